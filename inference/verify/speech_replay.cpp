#include "inference/verify/speech_replay.hpp"

#include "inference/verify/e2e_set.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace parley::inference::verify {

using nlohmann::json;

recorded_draws numbers_of(const json& draws) {
  std::vector<double> numbers;
  for (const auto& draw : draws) numbers.push_back(draw.at("u"));
  return recorded_draws(numbers);
}

namespace {

/// Copies the logits, making those equal that differ only by rounding, as some were for the reference.
std::vector<float> with_ties(std::span<const float> logits) {
  constexpr float rounding = 4e-6F;
  std::vector<float> tied(logits.begin(), logits.end());
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  float group = tied[order.front()];
  for (const auto i : order) {
    if (group - tied[i] > rounding) group = tied[i];
    tied[i] = group;
  }
  return tied;
}

std::ptrdiff_t possible_tokens(std::span<const float> probabilities) {
  return std::count_if(probabilities.begin(), probabilities.end(), [](float x) { return x > 0; });
}

} // namespace

void replay_speech_tokens(const speech::tts_llama& llama, speech::tts_turn& turn, recorded_draws& chance,
                          const json& draws, case_check& check) {
  chance = numbers_of(draws);
  std::vector<float> p;
  for (const auto& draw : draws) {
    check.exact("steps", turn.running());
    if (!turn.running()) return;
    const auto row = turn.next();
    const auto logits = llama.logits(llama.forward({&row, 1})).cpu().contiguous();
    const std::span<const float> numbers(logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel()));
    speech::tts_probabilities(numbers, turn.penalised(), turn.sampling(), turn.banned(), p);
    const auto candidates = draw.at("candidates").get<std::ptrdiff_t>();
    // If two tokens tie for the last place among the candidates, both stay.
    if (possible_tokens(p) != candidates)
      speech::tts_probabilities(with_ties(numbers), turn.penalised(), turn.sampling(), turn.banned(), p);
    const auto token = speech::tts_draw(p, draw.at("u"));
    check.equal("speech token", token, draw.at("token").get<std::int64_t>());
    check.equal("speech tokens with a probability", possible_tokens(p), candidates);
    check.close("probability of a speech token", at::scalar_tensor(p.at(static_cast<std::size_t>(token))),
                at::scalar_tensor(draw.at("p").get<double>()));
    turn.take(numbers, chance);
  }
  check.exact("end of the group", !turn.running());
}

at::Tensor replay_sound(const speech::token2wav& model, const speech::token2wav::job& job, const json& recorded,
                        at::Tensor& mel, case_check& check) {
  check.equal("tokens of a call", std::vector(job.tokens.begin(), job.tokens.end()),
              recorded.at("tokens").get<std::vector<std::int64_t>>());
  check.equal("last", job.last, recorded.at("last").get<bool>());
  check.equal("off", job.session->acoustic.rows(), recorded.at("off").get<std::int64_t>());
  speech::token2wav::trace trace;
  auto samples = model.run({&job, 1}, &trace)[0];
  check.equal("samples of a call", samples.size(0), recorded.at("samples").get<std::int64_t>());
  mel = trace.mels[0].squeeze(0);
  return samples;
}

void check_whole_sound(const std::vector<float>& mine, const json& recorded, case_check& check) {
  double power = 0;
  float peak = 0;
  for (const auto x : mine) {
    power += double{x} * x;
    peak = std::max(peak, std::abs(x));
  }
  const auto loudness = mine.empty() ? 0 : std::sqrt(power / static_cast<double>(mine.size()));
  check.equal("samples in all", mine.size(), recorded.at("samples").get<std::size_t>());
  check.close("rms", at::scalar_tensor(loudness), at::scalar_tensor(recorded.at("rms").get<double>()));
  check.close("peak", at::scalar_tensor(peak), at::scalar_tensor(recorded.at("peak").get<double>()));
}

} // namespace parley::inference::verify
