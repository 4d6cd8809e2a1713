#pragma once

#include "conversation/unit_cost.hpp"
#include "inference/engine.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

namespace parley::tests {

/// A test's control over a stub engine: what it answers, and what it received. Thread-safe. Must outlive the engine.
class stub_script {
public:
  using sink = inference::engine::sink;
  using answer = std::function<void(const conversation::command&, const sink&)>;
  using unit_answer = std::function<void(conversation::step_output reply, const sink&)>;

  explicit stub_script(int slots = 4) {
    info_.model = "stub";
    info_.device = "none";
    info_.slots = slots;
    info_.context_tokens = 8192;
    info_.hears = true;
    info_.unit = {14, 66, true};
  }

  /// Report this cost when it is loaded.
  void report(const conversation::unit_cost& unit) {
    change([&] { info_.unit = unit; });
  }

  /// Loading the engine will throw this.
  void fail_to_load(std::string why) {
    change([&] { load_error_ = std::move(why); });
  }

  /// Loading will wait until `allow_load`.
  void hold_loading() {
    change([&] { loading_held_ = true; });
  }
  void allow_load() {
    change([&] { loading_held_ = false; });
  }

  /// From the next pass on, the engine reports a capacity of this many sessions.
  void change_slots(int slots) {
    change([&] { slots_now_ = slots; });
  }

  /// Replaces the usual answers to commands other than open and close. If `how` throws, the engine dies.
  void answer_with(answer how) {
    change([&] { answer_ = std::move(how); });
  }

  /// The same for units only; `reply` already names its unit.
  void answer_units_with(unit_answer how) {
    answer_with([how = std::move(how)](const conversation::command& order, const sink& tell) {
      const auto* unit = std::get_if<conversation::submit_unit>(&order);
      if (!unit) return;
      conversation::step_output reply{};
      reply.session = unit->session;
      reply.unit = unit->unit;
      how(std::move(reply), tell);
    });
  }

  /// The next command makes the engine throw.
  void die() {
    answer_with([](const conversation::command&, const sink&) { throw std::runtime_error("the device is on fire"); });
  }

  /// Opening a session makes the engine throw.
  void die_of_opens() {
    change([&] { dies_of_opens_ = true; });
  }

  /// The usual answer, for scripts that replace only some.
  static void answer_as_usual(const conversation::command& order, const sink& tell);

  /// Waits until `holds` is true of the script; false after a deadline that only a broken program reaches.
  bool eventually(const std::function<bool(const stub_script&)>& holds) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return holds(*this); });
  }

  // For use inside `eventually`.
  std::size_t open_sessions() const { return open_.size(); }
  std::size_t most_open() const { return most_open_; }
  std::size_t seen() const { return seen_.size(); }
  std::size_t idles() const { return idles_; }
  template<class Command>
  std::vector<Command> all() const {
    std::vector<Command> found;
    for (const auto& each : seen_)
      if (const auto* one = std::get_if<Command>(&each)) found.push_back(*one);
    return found;
  }

  std::unique_ptr<inference::engine> make(sink tell);

private:
  friend class stub_engine;

  template<class Change>
  void change(Change what) {
    const std::lock_guard lock(mutex_);
    what();
    changed_.notify_all();
  }

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  inference::engine_info info_;
  int slots_now_ = 0;
  std::string load_error_;
  bool loading_held_ = false;
  answer answer_;
  bool dies_of_opens_ = false;
  std::vector<conversation::command> seen_;
  std::set<conversation::session_id> open_;
  std::size_t most_open_ = 0;
  std::size_t idles_ = 0; ///< calls of `idle`, of which every third one has nothing more to do
};

/// Handles one command per pass. Opens and closes like a real engine. Unless the script says otherwise, it answers a
/// unit with one `listen`, and a turn with two deltas and their end.
class stub_engine final : public inference::engine {
public:
  stub_engine(stub_script& script, sink tell) : script_(script), tell_(std::move(tell)), info_(script.info_) {}
  ~stub_engine() override {
    script_.change([&] { script_.open_.clear(); });
  }

  const inference::engine_info& info() const override { return info_; }

  /// One page for each open session.
  inference::engine_capacity capacity() const override {
    inference::engine_capacity now{100, 100, 3, 1, 5, 2};
    script_.change([&] {
      now.kv_pages_free -= static_cast<int>(script_.open_.size());
      now.slots = script_.slots_now_;
      now.unit_us = 1'500'000;
      now.chat_us = 250'000;
      now.late_background = 7;
    });
    return now;
  }

  void handle(conversation::command&& order) override { commands_.push_back(std::move(order)); }

  bool advance() override {
    if (commands_.empty()) return false;
    const conversation::command order = std::move(commands_.front());
    commands_.pop_front();
    stub_script::answer how;
    script_.change([&] {
      script_.seen_.push_back(order);
      how = script_.answer_;
    });
    if (!lifecycle(order)) how ? how(order, tell_) : stub_script::answer_as_usual(order, tell_);
    return !commands_.empty();
  }

  bool idle() override {
    bool more = false;
    script_.change([&] { more = ++script_.idles_ % 3 != 0; });
    return more;
  }

private:
  bool lifecycle(const conversation::command& order) {
    if (const auto* duplex = std::get_if<conversation::open_duplex>(&order)) {
      open(duplex->session, 12);
    } else if (const auto* chat = std::get_if<conversation::open_chat>(&order)) {
      open(chat->session, 0);
    } else if (const auto* close = std::get_if<conversation::close_session>(&order)) {
      script_.change([&] { script_.open_.erase(close->session); });
      tell_(conversation::closed{close->session});
    } else {
      return false;
    }
    return true;
  }

  void open(conversation::session_id session, int prompt_tokens) {
    bool full = false;
    script_.change([&] {
      if (script_.dies_of_opens_) throw std::runtime_error("poison");
      full = script_.open_.size() >= static_cast<std::size_t>(std::max(info_.slots, script_.slots_now_));
      if (!full) script_.open_.insert(session);
      script_.most_open_ = std::max(script_.most_open_, script_.open_.size());
    });
    if (full) throw std::logic_error("more sessions than slots");
    tell_(conversation::opened{session, prompt_tokens, {.input_text = prompt_tokens}});
  }

  stub_script& script_;
  sink tell_;
  const inference::engine_info info_;
  std::deque<conversation::command> commands_;
};

inline void stub_script::answer_as_usual(const conversation::command& order, const sink& tell) {
  if (const auto* unit = std::get_if<conversation::submit_unit>(&order)) {
    if (unit->replay && unit->replay->finished) return tell(conversation::replayed{unit->session, unit->unit});
    conversation::step_output listen{};
    listen.session = unit->session;
    listen.unit = unit->unit;
    listen.kind = conversation::output_kind::listen;
    listen.first = listen.last = true;
    listen.used.input_audio = 10;
    listen.metrics.kv_cache_length = 24;
    conversation::unit_choices chosen;
    chosen.finished = true;
    listen.choices = std::make_shared<const conversation::unit_choices>(std::move(chosen));
    tell(std::move(listen));
  } else if (const auto* turn = std::get_if<conversation::submit_turn>(&order)) {
    tell(conversation::chat_delta{turn->session, turn->turn, "Hello ", nullptr});
    tell(conversation::chat_delta{turn->session, turn->turn, "there.", nullptr});
    tell(conversation::chat_done{
        turn->session, turn->turn, conversation::finish_reason::turn_end, "Hello there.", nullptr, {}, {}});
  }
}

inline std::unique_ptr<inference::engine> stub_script::make(sink tell) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !loading_held_; });
  if (!load_error_.empty()) throw std::runtime_error(load_error_);
  return std::make_unique<stub_engine>(*this, std::move(tell));
}

} // namespace parley::tests
