#pragma once

#include "actors/session/journal_input.hpp"
#include "actors/session/spill_writer.hpp"
#include "conversation/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
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
class journal {
public:
  struct bound {
    std::size_t bytes = 64u << 20; ///< of units, in memory
    spill_writer* disk = nullptr;  ///< takes the oldest units if there are more; null: then the session can never move
  };

  journal() = default;
  explicit journal(bound most) : most_(most) {}

  /// `call` will be called on another thread when `next` may have something after waiting for the disk.
  void wake_with(std::function<void()> call) { wake_ = std::move(call); }

  /// Records a command on its way to the engine and returns it as it must be sent. An open starts a new journal.
  conversation::command enter(conversation::command order);

  /// The number of the unit or turn that is answered without an end: with this answer it would be more than an engine ever
  /// says. Call before `note`.
  std::optional<std::uint64_t> endless(const conversation::event& answer) const;

  /// Records an answer from the engine.
  void note(const conversation::event& answer);

  /// Whether the session can be moved: it is open, and everything is kept. May change during a move if the disk fails.
  bool whole() const { return opened_ && !overflown_; }

  /// Whether the memory was exceeded or the disk failed, so that the session can no longer be moved.
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
  std::size_t spilled_units() const { return spilled_; }

private:
  struct past_unit {
    std::uint64_t number = 0;
    journal_input input;
    int max_slice_nums = 1;
    bool force_listen = false;
    std::shared_ptr<const conversation::unit_choices> choices;
    std::shared_ptr<spilled_block> spilled = {}; ///< the input, if it is on disk
    bool fetched = false;                        ///< it has been requested since `rewind`
    std::size_t bytes() const;
  };

  bool moving() const { return !reopened_ || confirmed_ != past_.size(); }
  void on_unit_answered(const conversation::step_output& output);
  void on_delta(const conversation::chat_delta& delta);
  void keep(past_unit unit);
  void spill();
  void give_up();
  void begin_anew();
  bool at_hand();
  conversation::submit_unit order_of(past_unit& unit) const;

  bound most_;
  std::function<void()> wake_;
  std::variant<std::monostate, conversation::open_duplex, conversation::open_chat> opening_;
  bool opened_ = false;
  bool overflown_ = false;
  std::vector<past_unit> past_;
  std::size_t bytes_ = 0;
  std::size_t spilled_ = 0; ///< how many of `past_` are on disk, from the front
  std::shared_ptr<spill_file> file_;

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
