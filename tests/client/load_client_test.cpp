#include "client/load_client.hpp"

#include "tests/client/noted_steps.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace parley::client;
namespace protocol = parley::protocol;
using type = server_event_type;

namespace {

/// Records what a simulated person does.
struct noted_hands final : load_hands, parley::client::test::noted_steps {
  double wake = -1;

  void send_init() override { done.push_back("init"); }
  void send_unit(std::size_t, bool force_listen) override { done.push_back(force_listen ? "forced" : "unit"); }
  void send_question() override { done.push_back("question"); }
  void send_close() override { done.push_back("close"); }
  void wake_at(double time) override { wake = time; }
  void leave() override { done.push_back("leave"); }
};

server_glance event(type what) {
  server_glance e;
  e.type = what;
  return e;
}

server_glance listen(std::int64_t input = 0) {
  auto e = event(type::listen);
  e.answers_unit = true;
  e.input = input;
  return e;
}

server_glance speech(std::int64_t input, std::size_t samples = 24'000, bool ends = false) {
  auto e = event(type::spoken);
  e.text = true;
  e.audio_samples = samples;
  e.answers_unit = true;
  e.end_of_turn = ends;
  e.input = input;
  return e;
}

struct stage {
  load_script script{{100}};
  load_habits habits;
  load_scenario role;
  noted_hands hands;
  load_figures figures;
  double end = 10;

  stage() {
    habits.jitter = 0;
    habits.playback_lead = 0;
  }

  load_client person() { return {role, script, habits, end, hands, figures}; }

  /// Goes on to the first second or question, sent at 1 s.
  void open(load_client& p) {
    p.connecting(0);
    p.heard(0.5, event(type::queue_done));
    p.heard(1, event(type::created));
  }
};

} // namespace

TEST_CASE("a paced session goes its whole way") {
  stage s;
  auto p = s.person();
  p.connecting(0);
  CHECK(s.hands.wake == 10);
  p.heard(0.5, event(type::queue_done));
  CHECK(s.hands.take() == "init");
  CHECK_FALSE(p.holds_session());
  p.heard(1, event(type::created));
  CHECK(p.holds_session());
  CHECK(s.hands.take() == "unit");
  for (int second = 1; second <= 8; ++second) {
    p.heard(second + 0.1, listen(second));
    CHECK(s.hands.wake == Approx(second + 1));
    p.woken(second + 1);
    CHECK(s.hands.take() == "unit");
  }
  p.heard(9.25, listen(9));
  CHECK(s.hands.wake == 10); // wakes at the end of the session
  p.woken(10);
  CHECK(s.hands.take() == "close unit"); // a microphone goes on
  p.heard(10.1, event(type::closed));
  p.ended(10.2, "");
  CHECK(s.figures.asked == 1);
  CHECK(s.figures.held == 1);
  CHECK(s.figures.completed == 1);
  CHECK(s.figures.units == 9);
  CHECK(s.figures.answered == 9);
  CHECK(s.figures.deadline_misses() == 0);
  CHECK(s.figures.errors.empty());
  CHECK(s.figures.queue_done.quantile(1).count() == Approx(0.5));
  CHECK(s.figures.created.quantile(1).count() == Approx(0.5));
  CHECK(s.figures.unit_latency().quantile(0.5).count() == Approx(0.1));
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(0.25));
}

TEST_CASE("a server that stalls is measured by what was due, not by what was sent") {
  stage s;
  auto p = s.person();
  s.open(p);
  for (int second = 2; second <= 5; ++second) p.woken(second);
  for (int unit = 1; unit <= 5; ++unit) p.heard(5.5, listen(unit)); // all answered at once
  CHECK(s.figures.answered == 5);
  CHECK(s.figures.missed == 4);
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(4.5));
  CHECK(s.figures.unit_latency().quantile(0.5).count() == Approx(2.5));
}

TEST_CASE("a generator that is late says so and does not flatter the server") {
  stage s;
  auto p = s.person();
  s.open(p);
  p.heard(1.1, listen(1));
  p.woken(2.75); // it was due at 2 s
  p.heard(2.8, listen(2));
  CHECK(s.figures.lateness.quantile(1).count() == Approx(0.75));
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(0.8));
  CHECK(s.hands.wake == Approx(3)); // the schedule of the next one has not moved
}

TEST_CASE("seconds that the server drops or never answers are misses") {
  stage s;
  auto p = s.person();
  s.open(p);
  for (int second = 2; second <= 9; ++second) p.woken(second);
  auto late = listen(4);
  late.dropped_units = 3;
  p.heard(9.5, late);
  CHECK(s.figures.dropped == 3);
  CHECK(s.figures.unanswered == 3);
  p.woken(10);
  p.heard(10.1, event(type::closed));
  CHECK(s.figures.unanswered == 3 + 4); // the fifth to eighth; the ninth was still in time
  CHECK(s.figures.deadline_misses() == 7 + 1);
}

TEST_CASE("speech is timed, played and interrupted") {
  stage s;
  s.habits.barge_in = 1;
  auto p = s.person();
  s.open(p);
  s.hands.take();
  p.heard(1.2, speech(1, 12'000));
  CHECK(s.figures.first_text.quantile(1).count() == Approx(0.2));
  CHECK(s.figures.first_sound.quantile(1).count() == Approx(0.2));
  p.woken(2);
  CHECK(s.hands.take() == "forced");
  auto more = speech(2, 24'000);
  more.answers_unit = false;
  p.heard(2.3, more); // the half second of sound before it ended at 1.7 s
  CHECK(s.figures.first_text.count() == 1);
  auto silence = listen(2);
  p.heard(2.4, silence);
  CHECK(s.figures.silenced.quantile(1).count() == Approx(0.4));
  CHECK(s.figures.interruptions == 1);
  p.ended(2.5, "");
  CHECK(s.figures.gaps == 1);
  CHECK(s.figures.gap_seconds == Approx(0.6));
  CHECK(s.figures.sound_seconds == Approx(1.5));
  CHECK(s.figures.errors.at("connection_closed") == 1);
}

TEST_CASE("each turn has its own first word") {
  stage s;
  auto p = s.person();
  s.open(p);
  p.heard(1.1, speech(1, 24'000, true));
  p.woken(2);
  p.heard(2.3, speech(2));
  CHECK(s.figures.turns == 1);
  CHECK(s.figures.first_sound.count() == 2);
  CHECK(s.figures.first_sound.quantile(1).count() == Approx(0.3));
  CHECK(s.figures.spoken == 2);
}

TEST_CASE("the legacy dialect is counted in order") {
  stage s;
  s.role.spoken = protocol::dialect::legacy;
  auto p = s.person();
  s.open(p);
  p.woken(2);
  p.heard(2.1, listen());
  p.heard(2.2, speech(0));
  p.heard(2.3, listen()); // does not answer a question
  CHECK(s.figures.answered == 2);
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(1.1));
}

TEST_CASE("fast, a second is sent when the one before is answered") {
  stage s;
  s.habits.fast = true;
  auto p = s.person();
  s.open(p);
  s.hands.take();
  CHECK(s.hands.wake == 10);
  p.heard(1.05, listen(1));
  CHECK(s.hands.take() == "unit");
  p.heard(1.15, listen(2));
  CHECK(s.hands.take() == "unit");
  CHECK(s.figures.unit_latency().quantile(1).count() == Approx(0.1));
  p.woken(10);
  CHECK(s.hands.take() == "close unit");
}

TEST_CASE("chat asks, thinks and asks again") {
  stage s;
  s.role.mode = protocol::mode::chat;
  auto p = s.person();
  s.open(p);
  CHECK(s.hands.take() == "init question");
  auto delta = event(type::spoken);
  delta.text = true;
  p.heard(1.5, delta);
  p.heard(1.6, delta);
  auto done = event(type::response_done);
  done.text = true;
  done.reason = "turn_end";
  p.heard(2, done);
  CHECK(s.figures.answered == 1);
  CHECK(s.figures.turns == 1);
  CHECK(s.figures.spoken == 1);
  CHECK(s.figures.first_text.count() == 1);
  CHECK(s.figures.first_text.quantile(1).count() == Approx(0.5));
  CHECK(s.figures.whole_answer.quantile(1).count() == Approx(1));
  CHECK(s.figures.unit_latency().empty()); // chat has no deadline
  CHECK(s.hands.wake > 2);
  p.woken(s.hands.wake);
  auto error = event(type::error);
  error.error_code = "invalid_payload";
  if (s.hands.take() == "question") {
    p.heard(9, error);
    CHECK(s.figures.errors.at("invalid_payload") == 1);
    CHECK(s.figures.answered == 2);
  }
}

TEST_CASE("what goes wrong is counted by its code") {
  stage s;
  auto p = s.person();
  SECTION("refused") {
    p.connecting(0);
    auto error = event(type::error);
    error.error_code = "queue_full";
    p.heard(0.1, error);
    p.ended(0.2, "");
    CHECK(s.figures.errors == std::map<std::string, std::int64_t>{{"queue_full", 1}});
  }
  SECTION("not let in before the end") {
    p.connecting(0);
    p.woken(10);
    CHECK(s.hands.take() == "close");
    p.heard(10.1, event(type::closed));
    CHECK(s.figures.errors == std::map<std::string, std::int64_t>{{"not_created", 1}});
    CHECK(s.figures.completed == 0);
  }
  SECTION("ended by the server") {
    s.open(p);
    auto closed = event(type::closed);
    closed.reason = "context full\"";
    p.heard(2, closed);
    p.ended(2.1, "");
    CHECK(s.figures.errors == std::map<std::string, std::int64_t>{{"closed:context_full_", 1}});
  }
  SECTION("no connection") {
    p.connecting(0);
    p.ended(0.1, "connection_failed");
    CHECK(s.figures.errors == std::map<std::string, std::int64_t>{{"connection_failed", 1}});
  }
  SECTION("a server that does not close") {
    s.open(p);
    p.woken(10);
    s.hands.take();
    p.woken(s.hands.wake);
    CHECK(s.hands.take() == "leave");
    CHECK(s.figures.errors == std::map<std::string, std::int64_t>{{"close_unanswered", 1}});
  }
  CHECK(s.figures.completed == 0);
}

TEST_CASE("a session that came back goes on, and the break is measured") {
  stage s;
  auto p = s.person();
  s.open(p);
  p.heard(1.1, listen(1));
  p.lost(1.5);
  p.woken(2);
  CHECK(s.hands.take() == "init unit unit"); // what is said meanwhile is sent later
  p.resumed(4);
  p.heard(4.1, listen(2));
  CHECK(p.holds_session());
  CHECK(s.figures.returned.count() == 1);
  CHECK(s.figures.returned.quantile(1).count() == Approx(2.5));
  CHECK(s.figures.missed == 1);
  CHECK(s.figures.errors.empty());
}
