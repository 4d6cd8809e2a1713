#include "client/voice_client.hpp"

#include "client/voice_wire.hpp"
#include "tests/client/noted_steps.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace parley::client;
using kind = voice_event::kind;

namespace {

/// Records what a simulated person does.
struct noted_voice final : voice_hands, parley::client::test::noted_steps {
  std::size_t pieces = 0;
  double wake = -1;

  void send_begin() override { done.push_back("begin"); }
  void send_piece(std::size_t, std::size_t) override { ++pieces; }
  void send_probe() override { done.push_back("probe"); }
  void send_close() override { done.push_back("close"); }
  void wake_at(double time) override { wake = time; }
  void leave() override { done.push_back("leave"); }
};

struct conversation {
  load_script script{{100}};
  load_habits habits;
  load_scenario role;
  noted_voice hands;
  load_figures figures;
  voice_traits traits = realtime_wire().traits();
  double end = 10;

  conversation() {
    habits.jitter = 0;
    habits.playback_lead = 0;
  }

  voice_client person() { return {role, traits, script, habits, end, hands, figures}; }

  /// Goes on to the first piece, sent at 1 s.
  void open(voice_client& p) {
    p.connecting(0);
    p.heard(0.5, {.what = kind::greeted});
    p.heard(1, {.what = kind::ready});
  }

  /// Lets time pass until `until`, sending all that is due.
  void talk(voice_client& p, double until) {
    while (hands.wake <= until) p.woken(hands.wake);
  }
};

voice_event sound(double seconds) {
  return {.what = kind::sound, .samples = static_cast<std::size_t>(seconds * 24'000)};
}

} // namespace

TEST_CASE("a voice agent goes its whole way, a tenth of a second at a time") {
  conversation s;
  auto p = s.person();
  s.open(p);
  CHECK(s.hands.take() == "begin");
  CHECK(p.holds_session());
  s.talk(p, 5.05);
  CHECK(s.hands.pieces == 41);
  CHECK(s.figures.units == 5); // the fifth has begun
  s.talk(p, 10);
  CHECK(s.hands.take() == "close");
  p.ended(10.1, "");
  CHECK(s.figures.held == 1);
  CHECK(s.figures.completed == 1);
  CHECK(s.figures.errors.empty());
  CHECK(s.figures.queue_done.quantile(1).count() == Approx(0.5));
  CHECK(s.figures.created.quantile(1).count() == Approx(0.5));
}

TEST_CASE("each second of an answer is due a second after the one before") {
  conversation s;
  auto p = s.person();
  s.open(p);
  s.talk(p, 3.02); // the newest sound was due at 3 s
  p.heard(3.05, {.what = kind::answer_begins});
  p.heard(3.06, {.what = kind::words});
  p.heard(3.07, sound(1));
  s.talk(p, 4.05);
  p.heard(4.06, sound(1));
  s.talk(p, 6.15);
  p.heard(6.2, sound(1)); // it was due at 5 s
  p.heard(6.3, {.what = kind::answer_ends});
  CHECK(s.figures.answered == 3);
  CHECK(s.figures.missed == 1);
  CHECK(s.figures.turns == 1);
  CHECK(s.figures.first_text.quantile(1).count() == Approx(0.06));
  CHECK(s.figures.first_sound.quantile(1).count() == Approx(0.07));
  CHECK(s.figures.unit_latency().quantile(0.5).count() == Approx(0.07));
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(1.2));
  s.talk(p, 10);
  p.ended(10, "");
  CHECK(s.figures.gaps == 1);
  CHECK(s.figures.gap_seconds == Approx(6.2 - 5.07));
}

TEST_CASE("an answer that stops in the middle is a miss") {
  conversation s;
  auto p = s.person();
  s.open(p);
  s.talk(p, 3);
  p.heard(3.05, {.what = kind::answer_begins});
  p.heard(3.07, sound(1));
  s.talk(p, 10);
  CHECK(s.figures.unanswered == 1);
  CHECK(s.figures.deadline_misses() == 1);
}

TEST_CASE("who is interrupted stops, and it is measured from the first word") {
  conversation s;
  s.script = {{2}};
  s.habits.pause = 0; // one recording follows the other
  auto p = s.person();
  s.open(p);
  s.talk(p, 3);
  p.heard(3.05, {.what = kind::answer_begins});
  p.heard(3.07, sound(1));
  p.heard(3.4, {.what = kind::answer_ends, .cancelled = true});
  CHECK(s.figures.interruptions == 1);
  CHECK(s.figures.silenced.quantile(1).count() == Approx(2.4)); // it talks since 1 s
}

TEST_CASE("fast, a second follows when the one before was read, and answered if the model speaks") {
  conversation s;
  s.habits.fast = true;
  auto p = s.person();
  s.open(p);
  CHECK(s.hands.take() == "begin probe");
  CHECK(s.hands.pieces == 10);
  CHECK(s.hands.wake == 10);
  p.heard(1.05, {.what = kind::answer_begins});
  p.heard(1.06, sound(1));
  CHECK(s.hands.pieces == 10);
  p.heard(1.1, {.what = kind::ready});
  CHECK(s.hands.pieces == 20);
  p.heard(1.15, {.what = kind::ready});
  CHECK(s.hands.pieces == 20); // the model speaks
  p.heard(1.3, sound(1));
  CHECK(s.hands.pieces == 30);
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(0.2));
  p.heard(1.35, {.what = kind::ready});
  p.heard(1.36, {.what = kind::answer_ends});
  CHECK(s.hands.pieces == 40);
}

TEST_CASE("in the Live API a pause ends an answer, and frames are due at their own pace") {
  conversation s;
  s.traits = live_wire().traits();
  auto p = s.person();
  s.open(p);
  s.talk(p, 3);
  for (int frame = 0; frame < 10; ++frame) p.heard(3.05 + 0.2 * frame, sound(0.2));
  CHECK(s.figures.answered == 3); // the frames that begin at 0, 0.2 and 1.2 s
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(0.05));
  s.talk(p, 7);
  p.heard(7.01, sound(0.2));
  CHECK(s.figures.turns == 1);
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(0.05));
  s.talk(p, 10);
  CHECK(s.hands.take() == "begin close");
  SECTION("and a goodbye is answered") {
    p.heard(10.1, {.what = kind::closed, .code = "close_requested"});
    p.ended(10.1, "");
    CHECK(s.figures.completed == 1);
    CHECK(s.figures.errors.empty());
  }
  SECTION("or missed") {
    p.ended(10.1, "");
    CHECK(s.figures.completed == 0);
    CHECK(s.figures.errors.at("close_unanswered") == 1);
  }
}

TEST_CASE("what goes wrong with a voice agent is counted by its code") {
  conversation s;
  auto p = s.person();
  s.open(p);
  p.heard(2, {.what = kind::error, .code = "rate limit"});
  p.broke_rule("unknown event");
  p.ended(3, "");
  CHECK(s.figures.violations == 1);
  CHECK(s.figures.errors == std::map<std::string, std::int64_t>{
                                {"connection_closed", 1}, {"rate_limit", 1}, {"violation:unknown_event", 1}});
}

TEST_CASE("events of both dialects are read") {
  const auto& realtime = realtime_wire();
  CHECK(realtime.read(R"({"type":"session.created","event_id":"e"})").what == kind::greeted);
  const auto delta = realtime.read(R"({"type":"response.output_audio.delta","delta":"AAAAAAAA"})");
  CHECK(delta.what == kind::sound);
  CHECK(delta.samples == 3);
  const auto done = realtime.read(R"({"type":"response.done","response":{"status":"cancelled"}})");
  CHECK(done.what == kind::answer_ends);
  CHECK(done.cancelled);
  CHECK(realtime.read(R"({"type":"response.done","response":{"status":"failed"}})").code == "response_failed");
  CHECK(realtime.read(R"({"type":"error","error":{"code":"invalid_value"}})").code == "invalid_value");
  CHECK(realtime.read("nonsense").what == kind::other);
  const auto& live = live_wire();
  CHECK(live.read(R"({"type":"session.output_audio.delta","delta":"AAAA"})").what == kind::sound);
  CHECK(live.read(R"({"type":"session.closed","reason":"expired"})").code == "expired");
  CHECK(live.path("/base/v1/realtime") == "/base/v1/live/sessions");
}
