#include "base/utf8.hpp"
#include "protocol/speech/paced_speech.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <random>
#include <string>
#include <vector>

using parley::protocol::time_point;
using parley::protocol::speech::paced_speech;
using parley::protocol::speech::sound_coding;
using parley::protocol::speech::sound_format;
using std::chrono::milliseconds;

namespace {

const time_point pace_start{std::chrono::hours(1)};

/// What is sent from `now` on, until nothing is due.
std::vector<paced_speech::piece> play_all(paced_speech& speech, time_point now) {
  std::vector<paced_speech::piece> out;
  for (auto due = speech.due(); due; due = speech.due()) {
    now = std::max(now, *due);
    while (auto piece = speech.next(now)) out.push_back(std::move(*piece));
  }
  return out;
}

} // namespace

TEST_CASE("every word is sent once, in whole characters, however text and sound come") {
  const std::vector<std::string> texts{
      "你好，世界。我是一个模型", " Größe", "a", " one two three four", "", "   ", "€"};
  std::mt19937 random(7);
  for (int run = 0; run < 200; ++run) {
    const bool law = run % 2 == 0;
    paced_speech speech(law ? sound_format{sound_coding::mu_law, 8000} : sound_format{});
    std::string said, sent;
    auto now = pace_start;
    for (int turn = 0; turn < 3; ++turn) {
      for (int i = 0; i < 5; ++i) {
        const auto& text = texts[random() % texts.size()];
        said += text;
        speech.say(text);
        speech.sound(std::vector<float>(random() % 40'000), random() % 2 == 0);
        for (; auto piece = speech.next(now);) sent += piece->words;
        now += milliseconds(random() % 1500);
      }
      speech.end();
      for (const auto& piece : play_all(speech, now)) {
        CHECK(parley::base::utf8::valid(piece.words));
        CHECK(piece.words_ms >= 200);
        CHECK(piece.audio.size() == (law ? 2136 : 12'800)); // 200 ms as base64
        sent += piece.words;
        now = std::max(now, piece.plays_at);
      }
      CHECK(sent == said);
    }
  }
}

TEST_CASE("frames follow each other at 200 ms whenever the clock is read, and a pause is not made up for") {
  paced_speech speech{sound_format{}};
  speech.say(" one two three");
  speech.sound(std::vector<float>(24'000), true);
  CHECK(speech.next(pace_start)->plays_at == pace_start);
  CHECK_FALSE(speech.next(pace_start + milliseconds(199)));
  CHECK(speech.next(pace_start + milliseconds(230))->plays_at == pace_start + milliseconds(200)); // a late timer
  CHECK(speech.due() == pace_start + milliseconds(400));
  CHECK(speech.next(pace_start + milliseconds(900))->plays_at == pace_start + milliseconds(900)); // a stalled server
  CHECK_FALSE(speech.next(pace_start + milliseconds(1000)));
  speech.cut();
  CHECK_FALSE(speech.due());
  CHECK(speech.playing(pace_start + milliseconds(1099)));
  CHECK_FALSE(speech.playing(pace_start + milliseconds(1100)));
}
