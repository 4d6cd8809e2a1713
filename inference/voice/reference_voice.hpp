#pragma once

#include "inference/voice/campplus.hpp"
#include "inference/voice/s3_tokenizer.hpp"

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace parley::inference::speech {

/// What the networks extracted from a reference recording (docs/model/talker.md 6).
struct voice_features {
  at::Tensor tokens;  ///< int64 [n], 25 a second
  at::Tensor speaker; ///< float32 [192]
  at::Tensor mel;     ///< float32 [2 n, bins]
};

/// Number of rows that the flow model's memory had in the reference. A voice, the rows kept of the conversation, and
/// one chunk must fit.
inline constexpr std::int64_t flow_memory_rows = 1000;

/// Of these, the rows kept of the conversation besides as many as the voice has, and those of the largest chunk.
inline constexpr std::int64_t rows_beside_voice = 100 + 56;

/// The longest voice, in mel rows of 20 ms, with which a stream never exceeds that memory.
inline constexpr std::int64_t longest_voice_rows = flow_memory_rows - rows_beside_voice;

/// At 16 kHz: shorter reference recordings are refused, longer ones than `longest_voice_samples` cut.
inline constexpr std::int64_t shortest_voice_samples = 1600;
inline constexpr std::int64_t longest_voice_samples = longest_voice_rows * 320;

/// The part of a recording that is used.
inline std::span<const float> part_of_voice(std::span<const float> samples) {
  return samples.first(std::min(samples.size(), static_cast<std::size_t>(longest_voice_samples)));
}

/// Why a recording can't be a reference voice, in words for the client; none = it can. 16 kHz mono.
std::optional<std::string> voice_problem(std::span<const float> samples);

/// The networks that analyse a reference voice.
class voice_ear {
public:
  voice_ear(const onnx_graph& tokenizer, onnx_graph speaker, at::Device device = at::kCPU,
            partial_window windows = partial_window::by_opset)
      : tokenizer_(tokenizer, device), speaker_(std::move(speaker), device, windows), device_(device) {}

  /// samples float32 [channels, n] as stored in a file, at any rate: tokens and speaker come from the first channel,
  /// the mel from the mean of all.
  voice_features hear(const at::Tensor& samples, int rate) const;

  /// 16 kHz mono as sent by a client. Rounded to 16 bits like the reference's intermediate file, and cut to the length
  /// that fits.
  voice_features hear(std::span<const float> samples) const;

  const s3_tokenizer& tokenizer() const { return tokenizer_; }
  const campplus& speaker() const { return speaker_; }

private:
  s3_tokenizer tokenizer_;
  campplus speaker_;
  at::Device device_;
};

} // namespace parley::inference::speech
