#pragma once

#include "client/codec/server_glance.hpp"
#include "client/listener.hpp"
#include "client/load_figures.hpp"
#include "client/load_scenario.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <string_view>

namespace parley::client {

/// The actions of a simulated person; none of them blocks. Implemented by a connection, and by tests.
class load_hands {
public:
  virtual ~load_hands() = default;

  virtual void send_init() = 0;
  virtual void send_unit(std::size_t unit, bool force_listen) = 0; ///< index in `load_script`
  virtual void send_question() = 0;
  virtual void send_close() = 0;

  /// Calls `woken` at that time of the run; replaces an earlier call.
  virtual void wake_at(double time) = 0;

  /// Ends the connection.
  virtual void leave() = 0;
};

/// One simulated person, from connecting to the end: decides what to do when, and measures what comes back. Times are
/// passed in, in seconds of the run: no clock, no sockets, no threads.
class load_client {
public:
  /// Asks nothing more after `end`. All arguments must outlive it.
  load_client(const load_scenario& role, const load_script& script, const load_habits& habits, double end,
              load_hands& hands, load_figures& into);

  void connecting(double now);
  void heard(double now, const server_glance& event);
  void woken(double now);

  /// The connection broke and the server kept the session; and it continues over another one.
  void lost(double now);
  void resumed(double now);

  /// The connection ended. `failure` gives the reason in one word, if it was not a closing handshake.
  void ended(double now, std::string_view failure);

  bool holds_session() const { return state_ == state::active; }

private:
  enum class state { connecting, initialising, active, closing, over };

  void begin(double now);
  void answer(double now, const server_glance& event);
  void take_output(double now, const server_glance& event, double due);
  void finish_unit(double now, std::size_t unit);
  void finish_question(double now);
  void fail(std::string_view code);
  void send_chunk(double now);
  void close(double now);
  void give_up(double now);
  void finish(double now);
  bool chats() const { return role_->mode == protocol::mode::chat; }

  const load_scenario* role_;
  const load_habits* habits_;
  double end_;
  load_hands* hands_;
  load_figures* into_;
  load_pace pace_;
  listener ear_;
  state state_ = state::connecting;
  double connected_ = 0, asked_ = 0; ///< when the connection, and the init, began
  double lost_ = 0;                  ///< when the connection broke
  double first_due_ = 0, next_due_ = 0;
  std::deque<double> open_;  ///< when each unanswered second or question was due, oldest first
  std::size_t said_ = 0;     ///< units or questions sent
  std::size_t answered_ = 0; ///< how many of them are answered or given up
  std::int64_t dropped_ = 0;
  std::optional<double> silence_due_; ///< due time of the force_listen that has not been obeyed yet
  bool held_ = false, failed_ = false;
  bool turn_has_text_ = false, turn_has_sound_ = false, unit_spoke_ = false, interrupt_ = false;
};

} // namespace parley::client
