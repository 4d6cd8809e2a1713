#pragma once

#include "actors/kept_unit.hpp"
#include "actors/spill_desk.hpp"
#include "inference/unit.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace parley::actors {

/// What a session keeps so that it can be taken up on another worker as if nothing had happened: how it was opened, the
/// units as they were sent, what the engine chose. Plain bookkeeping; not thread-safe.
///
///   talking:  every order to the engine passes `enter`, every answer of it passes `note` before anyone acts on it.
///   moving:   `rewind`; then whatever `next` gives goes to the new engine, and its answers pass `note`, until
///             `caught_up`. Then the unit or turn that was under way is sent again, through `enter` as ever, which adds
///             what was chosen of it: the engine answers what has not left yet and nothing else.
///
/// A move that comes to nothing, because that engine is lost too, begins again with `rewind`.
class journal {
public:
  struct bound {
    std::size_t bytes = 64u << 20; ///< of units, in memory
    spill_desk* disk = nullptr;    ///< takes the oldest ones when there are more; null: then it can't be moved any more
  };

  journal() = default;
  explicit journal(bound most) : most_(most) {}

  /// `call` is called, on another thread, when `next` may have something after it had to wait for the disk.
  void wake_with(std::function<void()> call) { wake_ = std::move(call); }

  /// An order on its way to the engine, given back as it is to be sent. An open begins the journal anew.
  inference::command enter(inference::command order);

  /// An answer of the engine's.
  void note(const inference::event& answer);

  /// Whether the session can be moved: it is open, and all of it is kept. May change while it is being moved, when the
  /// disk fails.
  bool whole() const { return opened_ && !overflown_; }

  /// There was more than fits, or the disk failed: it can't be moved any more.
  bool overflown() const { return overflown_; }

  /// Whether the engine has been asked for something that it has not answered to the end: an open, a unit or a turn.
  bool awaits_answer() const { return !opened_ || unit_ || turn_; }

  /// The engine is lost.
  void rewind();

  /// The next order that rebuilds the session, as session `as`; none while answers have to come first, or nothing is
  /// left.
  std::optional<inference::command> next(inference::session_id as);

  /// The new engine's session is where the lost one was.
  bool caught_up() const { return whole() && !moving(); }

  /// What is kept of units in memory.
  std::size_t bytes() const { return bytes_; }
  std::size_t units() const { return past_.size(); }
  std::size_t spilled_units() const { return spilled_; }

private:
  struct past_unit {
    std::uint64_t number = 0;
    kept_unit input;
    int max_slice_nums = 1;
    bool force_listen = false;
    std::shared_ptr<const inference::unit_choices> choices;
    std::shared_ptr<parcel> spilled = {}; ///< the input, if it is on disk
    bool fetched = false;                 ///< it has been asked for since `rewind`
    std::size_t bytes() const;
  };

  bool moving() const { return !reopened_ || confirmed_ != past_.size(); }
  void unit_told(const inference::step_output& output);
  void delta_told(const inference::chat_delta& delta);
  void keep(past_unit unit);
  void spill();
  void give_up();
  void begin_anew();
  bool at_hand();
  inference::submit_unit order_of(past_unit& unit) const;

  bound most_;
  std::function<void()> wake_;
  std::variant<std::monostate, inference::open_duplex, inference::open_chat> opening_;
  bool opened_ = false;
  bool overflown_ = false;
  std::vector<past_unit> past_;
  std::size_t bytes_ = 0;
  std::size_t spilled_ = 0; ///< of `past_`, from the front
  std::shared_ptr<spill_file> file_;

  // under way
  std::optional<past_unit> unit_;
  std::optional<std::uint64_t> turn_;
  inference::turn_choices said_; ///< of it

  // moving
  bool reopened_ = true;
  bool asked_to_open_ = true;
  std::size_t sent_ = 0, confirmed_ = 0; ///< of `past_`
  std::size_t audible_ = 0;              ///< the first one of the turn that is still open
};

} // namespace parley::actors
