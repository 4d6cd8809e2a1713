#pragma once

#include "client/listener.hpp"
#include "client/load_figures.hpp"
#include "client/load_scenario.hpp"
#include "client/voice_wire.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace parley::client {

/// The actions of a simulated voice agent; none of them blocks. Implemented by a connection, and by tests.
class voice_hands {
public:
  virtual ~voice_hands() = default;

  virtual void send_begin() = 0;
  virtual void send_piece(std::size_t unit, std::size_t number) = 0; ///< a tenth of a unit of `load_script`
  virtual void send_probe() = 0;

  /// Says goodbye, in a dialect that has a word for it; otherwise leaves.
  virtual void send_close() = 0;

  /// Calls `woken` at that time of the run; replaces an earlier call.
  virtual void wake_at(double time) = 0;
  virtual void leave() = 0;
};

/// One simulated person who talks through a client of OpenAI's Realtime or Live API, in full duplex: sends 100 ms of
/// sound at a time, and measures what comes back. Times are passed in, in seconds of the run: no clock, no sockets, no
/// threads.
///
/// These dialects answer only what the model says something to, so what is measured are the seconds of answers: the
/// first was due when the newest sound before it was, and each later one a second after the one before. With
/// `load_habits::fast`, a second is sent at once, when the one before was read, and was answered if the model speaks: a
/// model that listens more slowly than that falls behind, and the server says `rate_limit_exceeded`.
class voice_client {
public:
  /// Says nothing more after `end`. All arguments must outlive it.
  voice_client(const load_scenario& role, const voice_traits& traits, const load_script& script,
               const load_habits& habits, double end, voice_hands& hands, load_figures& into);

  void connecting(double now);
  void heard(double now, const voice_event& event);
  void woken(double now);

  /// The connection ended. `failure` gives the reason in one word, if it was not a closing handshake.
  void ended(double now, std::string_view failure);

  /// An event broke a rule, which `what` names.
  void broke_rule(std::string_view what);

  bool holds_session() const { return state_ == state::active; }

private:
  enum class state { connecting, initialising, active, closing, over };

  void greet(double now);
  void begin(double now);
  void send_due(double now);
  void send_piece();
  void send_second(double now);
  void go_on(double now);
  void begin_answer();
  void take_words(double now);
  void take_sound(double now, std::size_t samples);
  void end_answer(double now, bool cancelled);
  void pause_ends(double now);
  void close(double now);
  void finish();
  void fail(std::string_view code);

  const voice_traits traits_;
  const load_habits* habits_;
  const double end_;
  voice_hands* hands_;
  load_figures* into_;
  load_pace pace_;
  const std::size_t silent_unit_;
  listener ear_;
  state state_ = state::connecting;
  double connected_ = 0, asked_ = 0; ///< when the connection, and the first event, began

  // what is said
  double first_due_ = 0, next_due_ = 0, newest_due_ = 0;
  std::size_t unit_ = 0, piece_ = 0, said_ = 0; ///< the current second, its next piece, all pieces so far
  bool talking_ = false;
  double talks_since_ = 0; ///< when the current recording was due
  bool probed_ = false, awaits_answer_ = false;

  // the answer
  bool speaking_ = false;
  bool has_text_ = false, has_sound_ = false;
  double answer_due_ = 0, received_ = 0, last_output_ = 0;
  std::int64_t measured_ = -1; ///< the newest second of it that was measured
  bool held_ = false;
};

} // namespace parley::client
