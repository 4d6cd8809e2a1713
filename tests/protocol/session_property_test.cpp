#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <set>

// Random sequences of events, in any order that a real server can produce, checked against invariants.
namespace parley::protocol::test {

namespace {

/// The queue, the worker and the client around one session. Keeps the contracts of session_effects.hpp and checks that
/// the machine does.
class world {
public:
  /// How the client talks: in frames, or in events, as one inside the process does, which can't come back.
  enum class talk { frames, events };

  world(unsigned seed, std::optional<std::string> mode, dialect spoken, talk how = talk::frames)
      : random_(seed), spoken_(spoken), how_(how), chat_(mode == "chat"),
        may_return_(spoken == dialect::current && how == talk::frames && seed % 3 == 0),
        by_unit_(spoken == dialect::current && !chat_ && seed % 5 < 2), closes_turns_(seed % 5 == 1),
        d_({.mode = std::move(mode), .limits = limits()}) {
    hear(d_.start());
  }

  void play(int rounds) {
    for (int i = 0; i < rounds; ++i) act();
    hear(d_.gone());
    if (may_return_) hear(d_.wait(31s));
    settle();
  }

  bool was_active() const { return active_; }

private:
  enum class slot { none, wanted, crossing, held };
  enum class engine { none, opening, open, closing };

  static session_limits limits() {
    session_limits few;
    few.audio = few.video = few.chat = 300s;
    return few;
  }

  bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

  void act() {
    if (away_ && chance(30)) return come_back();
    switch (random_() % 12) {
    case 0:
    case 1:
    case 2:
      if (!away_) how_ == talk::frames ? hear(d_.frame(own_append())) : say(append_event_of_its_own());
      break;
    case 3:
      if (!away_) how_ == talk::frames ? client_errs() : guest_errs();
      break;
    case 4:
      if (!away_) how_ == talk::frames ? hear(d_.frame(own_init())) : say(init_event_of_its_own());
      break;
    case 5: hear(d_.wait(std::chrono::milliseconds(random_() % (chance(10) ? 40'000 : 1'500)))); break;
    case 6: rare(); break;
    default: serves(); break;
    }
  }

  std::string own_init() const {
    if (spoken_ == dialect::legacy) return update_frame();
    const auto word = [](bool yes) { return std::string(yes ? "true" : "false"); };
    return init_frame(R"({"resume":)" + word(may_return_) + R"(,"config":{"unit_responses":)" + word(by_unit_) +
                      R"(,"listen_at_turn_end":)" + word(closes_turns_) + "}}");
  }

  // ---- the same in events

  void say(result<client_event> event) { hear(d_.note(d_.machine.on_event(std::move(event), d_.now))); }

  client_event init_event_of_its_own() const {
    init_event out;
    out.unit_responses = by_unit_;
    out.listen_at_turn_end = closes_turns_;
    return out;
  }

  client_event append_event_of_its_own() {
    if (chat_) {
      chat_append_event out;
      out.messages.push_back({role::user, {text_item{"hello"}}});
      return out;
    }
    constexpr std::size_t lengths[] = {4'000, 5'500, 16'000, 16'000, 16'000, 40'000};
    append_event out;
    out.samples = std::make_shared<const std::vector<float>>(lengths[random_() % std::size(lengths)], 0.25F);
    out.force_listen = chance(20);
    return out;
  }

  void guest_errs() {
    switch (random_() % 4) {
    case 0: return say(tl::unexpected(error{error_code::invalid_payload, "it could not be made"}));
    case 1: return say(append_event{}); // with nothing in it, and in chat of the wrong kind
    case 2: return say(chat_append_event{});
    default: {
      init_event out;
      out.has_system_prompt = true;
      out.system_prompt.assign(1u << 20, 'x');
      say(out);
    }
    }
  }

  void lose_client() {
    const bool waits = d_.machine.state() == session_state::active && may_return_ && !drained_;
    (waits ? away_ : gone_) = true;
    hear(d_.gone());
    REQUIRE((d_.machine.state() == session_state::closed) != waits);
  }

  /// Tries wrong claims, then a valid one.
  void come_back() {
    const bool lives = d_.machine.state() != session_state::closed;
    REQUIRE(d_.resume({token_ + "x", last_id_}).starts_with("refused"));
    REQUIRE(d_.resume({token_, last_id_ + 1}).starts_with("refused"));
    const auto seen = random_() % (last_id_ + 1);
    const auto said = d_.resume({token_, seen});
    REQUIRE(said.starts_with("refused") != lives);
    if (!lives) return;
    REQUIRE(said_event<session_resumed>(d_.last).resent == last_id_ - seen);
    away_ = false;
    hear(said);
  }

  std::string own_append() {
    if (chat_) return chat_frame();
    constexpr std::size_t lengths[] = {4'000, 5'500, 16'000, 16'000, 16'000, 40'000};
    return append_frame(spoken_, lengths[random_() % std::size(lengths)], chance(20) ? R"(,"force_listen":true)" : "");
  }

  void client_errs() {
    constexpr const char* frames[] = {"{}",
                                      "[]",
                                      R"({"type":"x"})",
                                      R"({"type":"session.init"})",
                                      R"({"type":"input.append","input":{}})",
                                      R"({"type":"input_audio_buffer.append"})"};
    hear(d_.frame(frames[random_() % std::size(frames)]));
  }

  void rare() {
    if (chance(85)) return;
    switch (random_() % 6) {
    case 0:
      if (!away_) how_ == talk::frames ? hear(d_.frame(close_frame())) : say(close_event{"user_stop"});
      break;
    case 1:
      drained_ = true;
      hear(d_.drain());
      break;
    case 2: lose_client(); break;
    case 3:
      if (!away_ && how_ == talk::frames) hear(chance(50) ? d_.binary() : d_.frame("no JSON"));
      break;
    case 4:
      if (slot_ == slot::held) lose_worker();
      break;
    default:
      if (slot_ == slot::wanted) {
        slot_ = slot::none;
        hear(d_.refused(error_code::service_unavailable));
      }
    }
  }

  void lose_worker() {
    slot_ = slot::none;
    engine_ = engine::none;
    step_.reset();
    turn_.reset();
    restoring_ = false;
    hear(chance(8) ? d_.work_lost_twice() : d_.worker_lost());
  }

  void serves() {
    if (slot_ == slot::wanted || slot_ == slot::crossing) {
      if (chance(30)) hear(d_.queued(1));
      slot_ = slot::held;
      hear(d_.grant());
    } else if (engine_ == engine::opening) {
      if (restoring_) {
        if (chance(80)) {
          engine_ = engine::open;
          restoring_ = false;
          hear(d_.restored());
        }
      } else if (chance(20)) {
        engine_ = engine::none;
        hear(d_.failed(failure(0, static_cast<conversation::failure_kind>(random_() % 3))));
      } else {
        engine_ = engine::open;
        hear(d_.opened());
      }
    } else if (engine_ == engine::closing) {
      engine_ = engine::none;
      hear(d_.engine_closed());
    } else if (step_) {
      work_on_step();
    } else if (turn_) {
      work_on_turn();
    }
  }

  void work_on_step() {
    const std::uint64_t unit = *step_;
    kv_ += 30;
    if (chance(5)) {
      step_.reset();
      hear(d_.failed(
          failure(unit, chance(50) ? conversation::failure_kind::inference : conversation::failure_kind::invalid)));
    } else if (halfway_) {
      step_.reset();
      conversation::step_output audio = audio_report(unit, 10, false, chance(20), kv_);
      audio.used = {};
      hear(d_.step(std::move(audio)));
    } else if (chance(30)) {
      halfway_ = true;
      hear(d_.step(text_report(unit, "half", false, kv_)));
    } else {
      step_.reset();
      hear(d_.step(chance(50) ? listen_report(unit, kv_) : text_report(unit, "all", true, kv_)));
    }
  }

  void work_on_turn() {
    const std::uint64_t turn = *turn_;
    if (cancelled_ || chance(20)) {
      turn_.reset();
      hear(d_.done(turn_over(
          turn, "text", cancelled_ ? conversation::finish_reason::cancelled : conversation::finish_reason::turn_end)));
    } else if (chance(10)) {
      turn_.reset();
      hear(d_.failed(failure(turn)));
    } else {
      hear(d_.turn(said(turn, "te")));
    }
  }

  void hear(const std::string& spoken_words) {
    INFO(spoken_words);
    const effects made = std::move(d_.last);
    for (const effect& each : made) std::visit([this](const auto& e) { on(e); }, each);
    if (d_.machine.state() == session_state::active) active_ = true;
    REQUIRE(d_.machine.holds_worker() == (slot_ == slot::held));
    if (const auto due = d_.machine.next_deadline()) REQUIRE(d_.machine.state() != session_state::closed);
  }

  // ---- what a client may rely on

  void on(const send& said) {
    REQUIRE_FALSE(closed_frame_);
    REQUIRE_FALSE(closed_event_);
    REQUIRE_FALSE(gone_);
    const bool numbered = created_ || std::holds_alternative<session_created>(said.event);
    if (const auto* resumed = std::get_if<session_resumed>(&said.event)) {
      token_ = resumed->resume_token;
      REQUIRE(said.event_id == 0);
    } else {
      REQUIRE(said.event_id == (may_return_ && numbered ? ++last_id_ : 0));
    }
    if (const auto* created = std::get_if<session_created>(&said.event)) {
      REQUIRE_FALSE(created_);
      created_ = true;
      token_ = created->resume_token.value_or("");
      REQUIRE(token_.empty() != may_return_);
      total_ = created->total;
    } else if (const auto* delta = std::get_if<output_delta>(&said.event)) {
      on_delta(*delta);
    } else if (const auto* done = std::get_if<response_done>(&said.event)) {
      on_done(*done);
    } else if (const auto* over = std::get_if<session_closed>(&said.event)) {
      closed_event_ = true;
      REQUIRE(over->total.has_value() == created_);
      if (created_) REQUIRE(*over->total == total_);
    } else if (const auto* away = std::get_if<session_go_away>(&said.event)) {
      REQUIRE(warnings_.insert(away->reason).second);
    }
  }

  void on_delta(const output_delta& delta) {
    REQUIRE(created_);
    if (chat_) return;
    REQUIRE(delta.chunk_index.has_value() == delta.chunk_usage.has_value());
    if (delta.chunk_index) {
      REQUIRE(*delta.chunk_index > last_chunk_);
      last_chunk_ = *delta.chunk_index;
      total_ += *delta.chunk_usage;
      REQUIRE(*delta.total == total_);
    }
    REQUIRE(delta.measured.kv_cache_length.has_value());
    if (by_unit_) return on_unit(delta);
    REQUIRE(delta.turn_id.empty());
    if (delta.closes_turn) {
      REQUIRE(responses_.contains(delta.response_id));
      return;
    }
    if (delta.kind == output_kind::listen) {
      REQUIRE(responses_.insert(delta.response_id).second);
      // Without wall_clock_ms it acknowledges an append that starts no step, while none runs.
      const bool acknowledges = !delta.measured.wall_clock_ms && !step_;
      REQUIRE((acknowledges || delta.measured.wall_clock_ms.has_value()));
      if (!acknowledges) turn_id_.clear();
    } else {
      if (turn_id_.empty()) {
        turn_id_ = delta.response_id;
        REQUIRE(responses_.insert(turn_id_).second);
      }
      // A failed step ends a turn silently.
      if (turn_id_ != delta.response_id) {
        REQUIRE(responses_.insert(delta.response_id).second);
        turn_id_ = delta.response_id;
      }
      if (delta.end_of_turn) turn_id_.clear();
      if (spoken_ == dialect::legacy) REQUIRE(delta.measured.wall_clock_ms.has_value());
    }
  }

  void on_done(const response_done& done) {
    if (chat_) {
      total_ += *done.used;
      REQUIRE(responses_.insert(done.response_id).second);
    } else {
      REQUIRE(by_unit_);
      end_unit(done.response_id);
    }
  }

  /// The same if each unit is a response of its own.
  void on_unit(const output_delta& delta) {
    REQUIRE(delta.turn_id.starts_with("turn_"));
    if (delta.kind == output_kind::listen) {
      if (!delta.measured.wall_clock_ms) {
        REQUIRE_FALSE(step_);
        REQUIRE(responses_.insert(delta.response_id).second);
      } else {
        end_unit(delta.response_id);
      }
      return;
    }
    if (turn_id_.empty()) REQUIRE(responses_.insert(turn_id_ = delta.response_id).second);
    REQUIRE(turn_id_ == delta.response_id);
  }

  /// Called for the one event that ends a unit.
  void end_unit(const std::string& id) {
    if (turn_id_.empty()) {
      REQUIRE(responses_.insert(id).second);
    } else {
      REQUIRE(turn_id_ == id);
    }
    turn_id_.clear();
    ++units_ended_;
  }

  void on(const send_again&) { REQUIRE(may_return_); }

  void on(const close_link&) {
    REQUIRE_FALSE(closed_frame_);
    closed_frame_ = true;
  }

  // ---- what the server may rely on

  void on(const enqueue&) {
    REQUIRE(slot_ == slot::none);
    slot_ = slot::wanted;
  }
  void on(const cancel_ticket&) {
    REQUIRE(slot_ == slot::wanted);
    slot_ = chance(30) ? slot::crossing : slot::none;
  }
  void on(const retype&) {}
  void on(const release_worker&) {
    REQUIRE(slot_ == slot::held);
    REQUIRE(engine_ == engine::none);
    slot_ = slot::none;
  }
  void on(const open_engine&) {
    REQUIRE(slot_ == slot::held);
    REQUIRE(engine_ == engine::none);
    engine_ = engine::opening;
  }
  void on(const restore_session&) {
    REQUIRE(slot_ == slot::held);
    REQUIRE(engine_ == engine::none);
    engine_ = engine::opening;
    restoring_ = true;
  }
  void on(const submit_unit& unit) {
    REQUIRE(engine_ == engine::open);
    REQUIRE_FALSE(step_);
    REQUIRE(unit.samples->size() == unit_samples);
    if (by_unit_) REQUIRE(units_ended_ == unit.unit); // each earlier unit has ended exactly once
    if (unit.unit != next_unit_) {
      REQUIRE(unit.unit + 1 == next_unit_); // sent again after a lost worker
    } else {
      ++next_unit_;
    }
    step_ = unit.unit;
    halfway_ = false;
  }
  void on(const cut&) { REQUIRE(step_); }
  void on(const submit_turn& turn) {
    REQUIRE(engine_ == engine::open);
    REQUIRE_FALSE(turn_);
    turn_ = turn.turn;
    cancelled_ = false;
  }
  void on(const cancel_turn&) {
    REQUIRE(turn_);
    cancelled_ = true;
  }
  void on(const transcribe_turn&) { FAIL("nobody asked for what the user says"); }
  void on(const close_engine&) {
    REQUIRE((engine_ == engine::open || engine_ == engine::opening));
    engine_ = engine::closing;
    step_.reset();
    turn_.reset();
  }

  /// Finishes everything that is under way; then nothing may be held.
  void settle() {
    if (slot_ == slot::crossing) {
      slot_ = slot::held;
      hear(d_.grant());
    }
    if (engine_ == engine::closing) {
      engine_ = engine::none;
      hear(d_.engine_closed());
    }
    REQUIRE(d_.machine.state() == session_state::closed);
    REQUIRE(slot_ == slot::none);
    REQUIRE(engine_ == engine::none);
    REQUIRE_FALSE(d_.machine.next_deadline());
    REQUIRE_FALSE(d_.machine.closed_reason().empty());
  }

  std::mt19937 random_;
  dialect spoken_;
  talk how_;
  bool chat_;
  bool may_return_;
  bool by_unit_;
  bool closes_turns_;
  driver d_;

  slot slot_ = slot::none;
  engine engine_ = engine::none;
  bool restoring_ = false;
  std::optional<std::uint64_t> step_, turn_;
  bool halfway_ = false;
  bool cancelled_ = false;
  std::uint64_t next_unit_ = 0;
  int kv_ = 50;

  bool active_ = false;
  bool created_ = false;
  bool closed_event_ = false;
  bool closed_frame_ = false;
  bool gone_ = false;
  bool away_ = false; ///< disconnected, but it may come back
  bool drained_ = false;
  std::string token_;
  std::uint64_t last_id_ = 0;
  std::int64_t last_chunk_ = -1;
  usage total_;
  std::string turn_id_; ///< the response_id of the open turn or unit
  std::uint64_t units_ended_ = 0;
  std::set<std::string> responses_, warnings_;
};

} // namespace

TEST_CASE("whatever happens, the promises of the machine hold") {
  int active = 0;
  for (unsigned seed = 0; seed < 1500; ++seed) {
    INFO("seed " << seed);
    const std::optional<std::string> modes[] = {"chat", "audio", "audio", "video"};
    const dialect dialects[] = {dialect::current, dialect::current, dialect::legacy, dialect::legacy};
    world each(seed, modes[seed % 4], dialects[seed % 4]);
    each.play(static_cast<int>(20 + seed % 130));
    active += each.was_active();
  }
  CHECK(active > 700); // most sequences reach the conversation
}

TEST_CASE("whatever happens, the promises of the machine hold for a client inside the process") {
  int active = 0;
  for (unsigned seed = 0; seed < 900; ++seed) {
    INFO("seed " << seed);
    const std::optional<std::string> modes[] = {"chat", "audio", "video"};
    world each(seed, modes[seed % 3], dialect::current, world::talk::events);
    each.play(static_cast<int>(20 + seed % 130));
    active += each.was_active();
  }
  CHECK(active > 420); // as above, most reach it
}

} // namespace parley::protocol::test
