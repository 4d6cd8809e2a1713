#include "inference/chat/stop_matcher.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>

using parley::inference::chat::stop_matcher;

namespace {

struct outcome {
  std::string text;
  bool stopped = false;
};

/// Character by character, which no cut can change.
outcome expected(const std::string& text, const std::vector<std::string>& stops) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const auto& stop : stops)
      if (text.substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    if (longest > 0) return {text.substr(0, end - longest), true};
  }
  return {text, false};
}

} // namespace

TEST_CASE("what may be a stop string is kept back") {
  stop_matcher stop({"END", "\n\n"});
  CHECK(stop.push("one E") == "one ");
  CHECK(stop.tokens_told() == 0);
  CHECK(stop.push("N").empty());
  CHECK(stop.push("X two\n") == "ENX two");
  CHECK(stop.tokens_told() == 2);
  CHECK(stop.push("\nthree").empty());
  CHECK(stop.found());
  CHECK(stop.tokens_told() == 2);
}

TEST_CASE("the rest of an answer without a stop string comes at its end") {
  stop_matcher stop({"END"});
  CHECK(stop.push("all E") == "all ");
  CHECK(stop.finish() == "E");
  CHECK_FALSE(stop.found());
  CHECK(stop.tokens_told() == 1);
}

TEST_CASE("a token that is a part of a character waits for the rest of it") {
  stop_matcher stop({"é"});
  CHECK(stop.push("a") == "a");
  CHECK(stop.push("").empty());
  CHECK(stop.tokens_told() == 1);
  CHECK(stop.push("é").empty());
  CHECK(stop.found());
  CHECK(stop.tokens_told() == 1);
}

TEST_CASE("an answer stops at the same place however it is cut") {
  std::mt19937 random(3);
  const auto word = [&](std::size_t most) {
    std::string made(1 + random() % most, 'a');
    std::ranges::generate(made, [&] { return "abc"[random() % 3]; });
    return made;
  };
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> stops(1 + random() % 4);
    std::ranges::generate(stops, [&] { return word(5); });
    const auto text = word(40);
    stop_matcher stop(stops);
    std::string told;
    for (std::size_t at = 0; at < text.size() && !stop.found();) {
      const auto size = std::min<std::size_t>(random() % 4, text.size() - at);
      told += stop.push(std::string_view(text).substr(at, size));
      at += size;
    }
    if (!stop.found()) told += stop.finish();
    const auto right = expected(text, stops);
    REQUIRE(told == right.text);
    REQUIRE(stop.found() == right.stopped);
  }
}
