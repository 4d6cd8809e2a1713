#pragma once

#include "actors/replay/replay_input.hpp"
#include "conversation/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace parley::actors {

/// What is kept of a session so that it can continue on another worker as if nothing had happened: how it was opened,
/// its units as they were sent, and the engine's choices. Plain bookkeeping; not thread-safe.
///
///   talking:  pass every command to the engine through `enter`, and every answer through `note` before acting on it.
///   moving:   `rewind`; then send whatever `next` returns to the new engine and pass its answers through `note`, until
///             `caught_up`. Then send the unit or turn that was under way again, through `enter` as usual, which adds
///             the choices already made: the engine answers only what has not been sent yet.
///
/// If a move fails, because that engine is lost too, start again with `rewind`.
class replay_buffer {
public:
  /// \param most_bytes of units; with more, the session can never move
  explicit replay_buffer(std::size_t most_bytes = 64u << 20) : most_bytes_(most_bytes) {}

  /// Records a command on its way to the engine and returns it as it must be sent. An open starts anew.
  conversation::command enter(conversation::command order);

  /// The number of the unit or turn that is answered without an end: with this answer it would be more than an engine ever
  /// says. Call before `note`.
  std::optional<std::uint64_t> endless(const conversation::event& answer) const;

  /// Records an answer from the engine.
  void note(const conversation::event& answer);

  /// Whether the session can be moved: it is open, and everything is kept.
  bool whole() const { return opened_ && !overflown_; }

  /// Whether it was too much, so that the session can no longer be moved.
  bool overflown() const { return overflown_; }

  /// Whether the engine has work that it has not finished answering: an open, a unit or a turn.
  bool awaits_answer() const { return !opened_ || unit_ || turn_; }

  /// Call when the engine is lost.
  void rewind();

  /// The next command for rebuilding the session, addressed to session `as`. Nothing while an answer must come first,
  /// or if all is rebuilt.
  std::optional<conversation::command> next(conversation::session_id as);

  /// Whether the new engine's session has reached the state of the lost one.
  bool caught_up() const { return whole() && !moving(); }

  /// Bytes of units kept in memory.
  std::size_t bytes() const { return bytes_; }
  std::size_t units() const { return past_.size(); }

private:
  struct past_unit {
    std::uint64_t number = 0;
    replay_input input;
    int max_slice_nums = 1;
    bool force_listen = false;
    std::shared_ptr<const conversation::unit_choices> choices;
    std::size_t bytes() const;
  };

  bool moving() const { return !reopened_ || confirmed_ != past_.size(); }
  void on_unit_answered(const conversation::step_output& output);
  void on_delta(const conversation::chat_delta& delta);
  void keep(past_unit unit);
  void give_up();
  static conversation::submit_unit order_of(const past_unit& unit);

  std::size_t most_bytes_;
  std::variant<std::monostate, conversation::open_duplex, conversation::open_chat> opening_;
  bool opened_ = false;
  bool overflown_ = false;
  std::vector<past_unit> past_;
  std::size_t bytes_ = 0;

  // under way
  std::optional<past_unit> unit_;
  std::optional<std::uint64_t> turn_;
  conversation::turn_choices said_; ///< the running turn's choices so far
  std::size_t said_bytes_ = 0;      ///< of its text and its calls
  std::size_t answers_ = 0;         ///< how many the running unit has had

  // while moving
  bool reopened_ = true;
  bool asked_to_open_ = true;
  std::size_t sent_ = 0, confirmed_ = 0; ///< how many of `past_`
  std::size_t audible_ = 0;              ///< the first unit of the turn that is still open
};

} // namespace parley::actors
