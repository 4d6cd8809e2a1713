#include "inference/speech/pcm16.hpp"
#include "inference/speech/speech_driver.hpp"
#include "inference/tts/sampler.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <numeric>

using namespace parley::inference::speech;

namespace {

std::vector<std::int64_t> counting(std::size_t n) {
  std::vector<std::int64_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

std::vector<std::pair<std::size_t, bool>> shape(const std::vector<window_call>& calls) {
  std::vector<std::pair<std::size_t, bool>> result;
  for (const auto& call : calls) result.emplace_back(call.tokens.size(), call.last);
  return result;
}

/// The tokens that become sound: all tokens of a last call; of the others all but the lookahead.
std::vector<std::int64_t> spoken(const std::vector<window_call>& calls) {
  std::vector<std::int64_t> result;
  for (const auto& call : calls)
    result.insert(result.end(), call.tokens.begin(), call.tokens.end() - (call.last ? 0 : window_lookahead));
  return result;
}

float probability(const std::vector<float>& p, std::size_t i) {
  return p.at(i);
}

} // namespace

TEST_CASE("a whole answer is spoken once, whatever its length, and ends with one last window") {
  CHECK(whole_windows({}).empty());
  for (std::size_t n = 1; n < 300; ++n) {
    const auto tokens = counting(n);
    const auto calls = whole_windows(tokens);
    INFO(n);
    REQUIRE(spoken(calls) == tokens);
    for (std::size_t i = 0; i < calls.size(); ++i) REQUIRE(calls[i].last == (i + 1 == calls.size()));
  }
  CHECK(shape(whole_windows(counting(28))) == shape({{counting(28), true}}));
}

TEST_CASE("a streamed answer becomes windows of 28 and a last one") {
  for (std::size_t n : {1, 24, 25, 26, 50, 118}) {
    turn_windows windows;
    std::vector<window_call> calls;
    const auto tokens = counting(n);
    for (auto token : tokens)
      if (auto call = windows.push(token)) calls.push_back(*call);
    for (const auto& call : calls) CHECK(call.tokens.size() == window_tokens);
    calls.push_back(windows.finish().value());
    CHECK(calls.back().last);
    std::vector<std::int64_t> expected(window_lookahead, silence_speech_token);
    expected.insert(expected.end(), tokens.begin(), tokens.end());
    INFO(n);
    CHECK(spoken(calls) == expected);
  }
  CHECK_FALSE(turn_windows().finish());
}

TEST_CASE("a duplex turn speaks what it has, keeps what is too little, and forgets it at the turn's end") {
  duplex_windows windows;
  CHECK(windows.push(counting(3), false).empty());
  CHECK(windows.waiting().size() == 6);
  CHECK(shape(windows.push(counting(25), false)) == std::vector<std::pair<std::size_t, bool>>{{28, false}});
  CHECK(windows.waiting().size() == 6);
  CHECK(shape(windows.push(counting(2), true)) == std::vector<std::pair<std::size_t, bool>>{{8, false}, {3, true}});
  CHECK(windows.waiting().size() == window_lookahead);
  CHECK(windows.push(counting(4), false).empty());
  windows.reset();
  CHECK(windows.waiting().front() == silence_speech_token);
}

TEST_CASE("the penalty counts how often a token was said, among the last sixteen") {
  tts_sampling rules;
  rules.temperature = 1;
  rules.repetition_penalty = 2;
  rules.narrow = false;
  std::vector<float> p;
  const std::vector<float> logits{4, 4, -1, -1};
  const std::vector<std::int64_t> said{0, 0, 2};
  tts_probabilities(logits, said, rules, -1, p);
  CHECK(std::log(probability(p, 1) / probability(p, 0)) == Approx(4 - 1.0));  // 4 / 2^2
  CHECK(std::log(probability(p, 3) / probability(p, 2)) == Approx(-1 + 2.0)); // -1 * 2
  std::vector<std::int64_t> long_ago{0};
  long_ago.insert(long_ago.end(), 16, 3);
  tts_probabilities(logits, long_ago, rules, -1, p);
  CHECK(probability(p, 0) == probability(p, 1));
}

TEST_CASE("narrowing keeps the likeliest, never fewer than three, and only once something was said") {
  tts_sampling rules;
  rules.temperature = 1;
  rules.repetition_penalty = 1;
  rules.top_p = 0.1F;
  const std::vector<float> logits{9, 1, 2, 3, 0};
  std::vector<float> p;
  const std::vector<std::int64_t> said{4};
  tts_probabilities(logits, said, rules, -1, p);
  CHECK(p[1] == 0);
  CHECK(p[4] == 0);
  CHECK((p[0] > 0 && p[2] > 0 && p[3] > 0));
  CHECK(std::accumulate(p.begin(), p.end(), 0.0) == Approx(1));
  tts_probabilities(logits, {}, rules, -1, p);
  CHECK(p[4] > 0);
  rules.top_p = 1;
  rules.top_k = 4;
  tts_probabilities(logits, said, rules, 0, p);
  CHECK(p[0] == 0);
  CHECK(p[4] == 0);
  CHECK(p[1] > 0);
}

TEST_CASE("a draw is the first token whose cumulative probability exceeds it") {
  const std::vector<float> p{0, 0.25F, 0.5F, 0.25F, 0};
  CHECK(tts_draw(p, 0) == 1);
  CHECK(tts_draw(p, 0.2499) == 1);
  CHECK(tts_draw(p, 0.25) == 2);
  CHECK(tts_draw(p, 0.76) == 3);
  CHECK(tts_draw(p, std::nextafter(1.0, 0.0)) == 3);
  CHECK(tts_likeliest(p) == 2);
}

TEST_CASE("both roundings to 16 bits stay in range") {
  for (float x : {1e30F, -1e30F, 1.0F, -1.0F}) {
    CHECK(std::abs(to_stream_pcm16(x)) == 32767);
    CHECK(std::abs(static_cast<int>(to_file_pcm16(x))) >= 32767);
  }
  CHECK(to_stream_pcm16(-0.00004F) == -1);
  CHECK(to_file_pcm16(-0.00001F) == -1);
}
