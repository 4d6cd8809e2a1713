#include "inference/voice/reference_voice.hpp"

#include "inference/speech/pcm16.hpp"
#include "inference/speech/resample.hpp"
#include "inference/voice/features.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace parley::inference::speech {

std::optional<std::string> voice_problem(std::span<const float> samples) {
  if (static_cast<std::int64_t>(samples.size()) < shortest_voice_samples)
    return "the reference voice is shorter than 0.1 s";
  if (!std::all_of(samples.begin(), samples.end(), [](float x) { return std::isfinite(x); }))
    return "the reference voice holds values that are not numbers";
  return std::nullopt;
}

voice_features voice_ear::hear(const at::Tensor& samples, int rate) const {
  const auto channels = samples.to(device_);
  const auto first = resample(channels[0], rate, voice_rate);
  voice_features heard;
  heard.tokens = tokenizer_.tokens(tokenizer_log_mel(first));
  heard.speaker = speaker_.embed(speaker_fbank(first));
  const auto mel = prompt_log_mel(resample(channels.mean(0), rate, mel_rate));
  const auto rows = 2 * heard.tokens.size(0);
  heard.mel = mel.narrow(0, 0, std::min(rows, mel.size(0)));
  if (const auto missing = rows - heard.mel.size(0); missing > 0)
    heard.mel = at::cat({heard.mel, heard.mel.slice(0, -1).expand({missing, heard.mel.size(1)})}, 0);
  return heard;
}

voice_features voice_ear::hear(std::span<const float> samples) const {
  const auto kept = part_of_voice(samples);
  auto rounded = at::empty({1, static_cast<std::int64_t>(kept.size())}, at::kFloat);
  auto* out = rounded.mutable_data_ptr<float>();
  for (auto x : kept) *out++ = static_cast<float>(to_file_pcm16(x)) / 32768.0F;
  return hear(rounded, voice_rate);
}

} // namespace parley::inference::speech
