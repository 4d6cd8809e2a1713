#include "tests/inference/engine_fixture.hpp"
#include "tests/inference/sounds.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

submit_turn with_sounds(std::uint64_t number, const std::vector<std::size_t>& samples) {
  auto turn = ask(1, number, "and?", 2);
  turn.messages.front().content.clear();
  for (auto n : samples)
    turn.messages.front().content.emplace_back(
        audio_item{std::make_shared<const std::vector<float>>(some_sound(1, n))});
  return turn;
}

} // namespace

TEST_CASE("a message may hold sounds of any lengths") {
  std::vector<std::vector<std::size_t>> messages{
      {15800, 15800}, {15800, 15800, 15800, 15800}, {1, 1}, {480001}, {479000, 15800}, {16000, 1, 16000}};
  std::mt19937 random(1);
  for (auto i = 0; i < 40; ++i) {
    messages.emplace_back();
    for (auto sounds = 1 + random() % 5; sounds > 0; --sounds) messages.back().push_back(1 + random() % 40000);
  }
  engine_fixture h(1);
  h.engine.handle(open_chat{1, 3});
  for (std::uint64_t number = 1; number <= messages.size(); ++number) {
    h.engine.handle(with_sounds(number, messages[number - 1]));
    h.run();
    for (const auto& f : h.all<failed>()) FAIL(f.message);
    const auto done = h.all<chat_done>().back();
    REQUIRE(done.turn == number);
    auto each = std::int64_t{0};
    for (auto n : messages[number - 1]) each += static_cast<std::int64_t>(n) / 1600;
    CHECK(done.used.input_audio >= each - std::ssize(messages[number - 1]));
    CHECK(done.used.input_audio <= each + std::ssize(messages[number - 1]));
  }
}

TEST_CASE("clips that are heard step by step give the rows of one call") {
  c10::InferenceMode guard;
  for (const auto& lengths :
       std::vector<std::vector<std::size_t>>{{16000}, {1, 700, 40000}, {480000, 480001}, {1'000'000}}) {
    std::vector<std::vector<float>> sounds;
    for (auto n : lengths) sounds.push_back(some_sound(2, n));
    const std::vector<std::span<const float>> clips(sounds.begin(), sounds.end());
    thinker::clip_hearing steps(*model(), clips, true);
    while (!steps.advance()) {
    }
    const auto once = model()->hear_clips(clips), rows = steps.take();
    REQUIRE(rows.sizes() == once.sizes());
    if (rows.numel() > 0)
      CHECK((rows - once).abs().max().item<double>() <= 1e-5 * std::max(1.0, once.abs().max().item<double>()));
  }
}

TEST_CASE("unless as in the reference, a sound costs what it lasts, and is heard as if it were alone") {
  c10::InferenceMode guard;
  const auto hear = [](std::span<const std::span<const float>> clips, bool padded) {
    thinker::clip_hearing steps(*model(), clips, padded);
    while (!steps.advance()) {
    }
    return steps.take();
  };
  std::vector<std::vector<float>> sounds{some_sound(2, 160'000)};
  for (auto n : {20'000, 400, 31'000}) sounds.push_back(some_sound(3, static_cast<std::size_t>(n)));
  const std::vector<std::span<const float>> clips(sounds.begin(), sounds.end());
  std::vector<at::Tensor> alone;
  for (const auto& clip : clips) alone.push_back(model()->hear_clips({&clip, 1}));
  const auto expected = at::cat(alone), rows = hear(clips, false), padded = hear(clips, true);
  REQUIRE(rows.sizes() == expected.sizes());
  CHECK((rows - expected).abs().max().item<double>() <= 1e-5 * expected.abs().max().item<double>());
  CHECK((padded - expected).abs().max().item<double>() > 1e-3);
}

TEST_CASE("a message that can't fit is refused before it is cut into tokens") {
  engine_fixture h(1, 1024);
  h.engine.handle(open_chat{1, 3});
  h.engine.handle(ask(1, 1, std::string(1 << 20, 'a')));
  auto many = ask(1, 2, "and?");
  for (auto i = 0; i < 20000; ++i)
    many.messages.front().content.emplace_back(audio_item{std::make_shared<const std::vector<float>>(1)});
  h.engine.handle(std::move(many));
  h.run();
  const auto refused = h.all<failed>();
  REQUIRE(refused.size() == 2);
  for (const auto& f : refused) {
    CHECK(f.kind == failure_kind::context_full);
    CHECK_THAT(f.message, Catch::Contains("at least"));
  }
}
