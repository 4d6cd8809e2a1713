#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

// docs/protocol.md 16.
namespace parley::protocol {

TEST_CASE("turns of a user are cut out of the sound, with a little before them") {
  speech::turn_listener listener;
  const auto sound = [](double seconds, float amplitude) {
    std::vector<float> samples(static_cast<std::size_t>(seconds * 16'000));
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = amplitude * std::sin(0.05f * static_cast<float>(i));
    return samples;
  };
  CHECK(listener.hear(sound(2, 0)).empty());
  CHECK(listener.hear(sound(1.5, 0.3f)).empty());
  const auto turns = listener.hear(sound(1, 0));
  REQUIRE(turns.size() == 1);
  CHECK(turns[0].start_ms >= 1900);
  CHECK(turns[0].start_ms <= 2100);
  CHECK(turns[0].end_ms >= 3400);
  CHECK(turns[0].sound->size() > 1.7 * 16'000);
  CHECK(turns[0].sound->size() < 3 * 16'000);
  CHECK(listener.hear(sound(40, 0.3f)).empty());
  const auto more = listener.hear(sound(1, 0));
  CHECK((more.empty() || more[0].sound->size() == most_transcribed_samples + 1));
}

TEST_CASE("a session that asks is told what its user said, with the times at which it was said") {
  using namespace test;
  driver d;
  d.to_connected();
  d.frame(init_frame(R"({"config":{"transcribe_input":true}})"));
  d.opened();
  CHECK(d.frame(append_frame(dialect::current, unit_samples, "", 0.0f)) == "unit:0");
  d.step(listen_report(0));
  CHECK(d.frame(append_frame(dialect::current, unit_samples, "", 0.25f)) == "unit:1");
  d.step(listen_report(1));
  CHECK(d.frame(append_frame(dialect::current, unit_samples, "", 0.0f)) == "transcribe:1 unit:2");
  CHECK(d.heard({1, transcript_result::completed, "Hello."}) == "transcript:Hello.");
  const auto& told = said_event<input_transcript>(d.last);
  CHECK(told.start_ms >= 900);
  CHECK(told.start_ms <= 1100);
  CHECK(told.end_ms >= 1900);
  CHECK(d.heard({1, transcript_result::completed, "Hello."}).empty());
  CHECK(d.heard({9, transcript_result::completed, "Never asked."}).empty());
}

TEST_CASE("context without sound is nothing that its user said") {
  using namespace test;
  driver d;
  d.to_connected();
  d.frame(init_frame(R"({"config":{"transcribe_input":true}})"));
  d.opened();
  CHECK(d.frame(R"({"type":"input.append","input":{"context":[{"role":"user","content":"x"}]}})").empty());
  CHECK(d.frame(append_frame(dialect::current, unit_samples, "", 0.25f)) == "unit:0");
}

TEST_CASE("why a turn was not written down is said in a word, and nobody is told who did not ask") {
  using namespace test;
  driver asks, silent;
  asks.to_connected();
  asks.frame(init_frame(R"({"config":{"transcribe_input":true}})"));
  asks.opened();
  silent.to_active();
  for (auto* each : {&asks, &silent}) {
    each->frame(append_frame(dialect::current, unit_samples, "", 0.25f));
    each->step(listen_report(0));
    each->frame(append_frame(dialect::current, unit_samples, "", 0.0f));
  }
  CHECK(asks.heard({1, transcript_result::too_long}) == "transcript:too_long");
  CHECK(silent.heard({1, transcript_result::completed, "Hello."}).empty());
  CHECK(words(silent.all).find("transcribe") == std::string::npos);
}

} // namespace parley::protocol
