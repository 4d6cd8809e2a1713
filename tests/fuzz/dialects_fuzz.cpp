#include "base/utf8.hpp"
#include "protocol/codec/event_writer.hpp"
#include "protocol/json/document.hpp"
#include "protocol/openai/beta/beta_adapter.hpp"
#include "protocol/openai/live/machine.hpp"
#include "protocol/openai/realtime/machine.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/protocol/server_events.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <variant>

namespace openai = parley::protocol::openai;
namespace speech = parley::protocol::speech;
namespace rt = parley::protocol::openai::realtime;
namespace live = parley::protocol::openai::live;
namespace guest = parley::protocol::guest;
using parley::test::expect;

namespace {

using clock_time = std::chrono::steady_clock::time_point;

/// Carries out what an adapter wants done as far as its contract can be checked.
class shell {
public:
  explicit shell(std::unique_ptr<openai::adapter> machine) : machine_(std::move(machine)) {
    carry_out(machine_->start(now_));
  }

  void client(std::string_view frame) { carry_out(machine_->on_frame(frame, now_)); }
  void inner(std::string_view frame) {
    const auto event = parley::tests::event_in(frame);
    if (open_ != 0 && event) carry_out(machine_->on_inner_event(open_, *event, now_));
  }
  void inner_closes() {
    if (open_ != 0) carry_out(machine_->on_inner_closed(open_, now_));
  }
  void write_down(std::string_view text) {
    if (unwritten_ == 0) return;
    carry_out(machine_->on_transcript(
        {unwritten_, parley::protocol::transcript_result::completed, std::string(text), 1}, now_));
    unwritten_ = 0;
  }
  void drain() { carry_out(machine_->on_drain(now_)); }

  void wait(std::chrono::milliseconds time) {
    const auto until = now_ + time;
    for (;;) {
      const auto due = machine_->next_deadline();
      if (!due || *due > until) break;
      now_ = std::max(now_, *due);
      carry_out(machine_->tick(now_));
      const auto next = machine_->next_deadline();
      expect(!next || *next > now_, "what was due is done");
    }
    now_ = until;
  }

private:
  void carry_out(const openai::effects& all) {
    for (const auto& each : all) {
      expect(!ended_, "nothing follows the end");
      std::visit([this](const auto& effect) { perform(effect); }, each);
    }
  }

  void perform(const openai::to_client& effect) {
    expect(parley::protocol::json::scan(effect.frame).outcome == parley::protocol::json::verdict::good,
           "a client hears JSON");
  }
  static void perform(const openai::play_sound& effect) { expect(effect.sound != nullptr, "there is sound"); }
  static void perform(const openai::drop_sound&) {}
  void perform(const openai::end_client& effect) {
    ended_ = true;
    expect(effect.code >= 1000 && effect.reason.size() < 124, "a close frame");
  }
  void perform(const guest::open_session& effect) {
    expect(open_ == 0, "one session at a time");
    open_ = effect.number;
  }
  void perform(const guest::to_session& effect) {
    expect(open_ != 0 && effect.number == open_, "the session is open");
    hears(effect.event);
  }
  void perform(const guest::turn_to_session& effect) {
    expect(open_ != 0 && effect.number == open_, "the session is open");
    const auto turn = effect.turn->make();
    expect(turn || !turn.error().message.empty(), "a turn, or words");
    if (turn) hears(*turn);
  }
  static void hears(const parley::protocol::client_event& event) {
    expect(parley::protocol::json::scan(parley::protocol::written(event)).outcome ==
               parley::protocol::json::verdict::good,
           "what is recorded of it is JSON");
  }
  void perform(const guest::drop_session& effect) {
    expect(open_ != 0 && effect.number == open_, "the session was open");
    open_ = 0;
  }

  void perform(const openai::transcribe& effect) {
    expect(effect.what.sound != nullptr, "a turn has sound");
    unwritten_ = effect.what.number;
  }
  void perform(const openai::note&) {}
  void perform(const openai::turn_moment&) {}

  clock_time now_{std::chrono::hours(1)};
  std::unique_ptr<openai::adapter> machine_;
  std::uint64_t open_ = 0;
  std::uint64_t unwritten_ = 0; ///< the last turn that is to be written down
  bool ended_ = false;
};

parley::protocol::random_source counting() {
  return [n = std::uint64_t{0}]() mutable { return n += 0x9E3779B97F4A7C15u; };
}

/// A line is what happens next: `c` and a client's frame, `i` and one of the inner session, `x` its end, `d` a drain,
/// `w` and the words of the user's last turn, `t` and tenths of a second.
void play(shell& server, std::string_view script) {
  while (!script.empty()) {
    const auto line = script.substr(0, script.find('\n'));
    script.remove_prefix(std::min(script.size(), line.size() + 1));
    if (line.empty()) continue;
    const auto rest = line.substr(1);
    switch (line.front()) {
    case 'c': server.client(rest); break;
    case 'i': server.inner(rest); break;
    case 'x': server.inner_closes(); break;
    case 'd': server.drain(); break;
    case 'w': server.write_down(rest); break;
    case 't': server.wait(std::chrono::milliseconds(100 * std::min<std::size_t>(rest.size(), 50))); break;
    default: break;
    }
  }
}

} // namespace

// What clients and inner sessions may send to the machines of OpenAI's dialects.
void parley::test::fuzz(std::string_view bytes) {
  if (!base::utf8::valid(bytes)) return; // the WebSocket layer lets nothing else through
  const clock_time accepted{std::chrono::hours(1)};
  rt::machine_terms terms;
  terms.transcribes = terms.duplex_calls = true;
  shell realtime(std::make_unique<rt::machine>(rt::origin{"parley", true, accepted, 0}, terms, counting()));
  play(realtime, bytes);
  shell beta(std::make_unique<openai::beta::beta_adapter>(
      std::make_unique<rt::machine>(rt::origin{"parley", true, accepted, 0}, terms, counting()), true));
  play(beta, bytes);
  live::machine_terms live_terms;
  live_terms.transcribes = live_terms.delegates = true;
  shell talking(std::make_unique<live::machine>(live::origin{accepted, 0}, live_terms, counting()));
  play(talking, bytes);
}
