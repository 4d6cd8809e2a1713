#pragma once

#include "actors/kept_sound.hpp"
#include "inference/unit.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

namespace parley::actors {

/// What a session keeps so that it can be taken up on another worker as if nothing had happened: how it was opened, the
/// units as they were sent, what the engine chose. Plain bookkeeping; not thread-safe.
///
///   talking:  every order to the engine passes `enter`, every answer of it passes `note` before anyone acts on it.
///   moving:   `rewind`; then whatever `next` gives goes to the new engine, and its answers pass `note`, until `caught_up`.
///             Then the unit or turn that was under way is sent again, through `enter` as ever, which adds what was chosen
///             of it: the engine answers what has not left yet and nothing else.
///
/// A move that comes to nothing, because that engine is lost too, begins again with `rewind`.
class journal {
public:
  struct bound {
    std::size_t bytes = 64u << 20; ///< of units; a session that needs more can't be moved any more
  };

  journal() = default;
  explicit journal(bound most) : most_(most) {}

  /// An order on its way to the engine. An open begins the journal anew.
  inference::command enter(inference::command order);

  /// An answer of the engine's.
  void note(const inference::event& answer);

  /// Whether the session can be moved: it is open, and all of it is here.
  bool whole() const { return opened_ && !overflown_; }

  /// There was more than fits: it can't be moved any more.
  bool overflown() const { return overflown_; }

  /// The engine is lost.
  void rewind();

  /// The next order that rebuilds the session, as session `as`; none while answers have to come first, or nothing is left.
  std::optional<inference::command> next(inference::session_id as);

  /// The new engine's session is where the lost one was.
  bool caught_up() const { return reopened_ && confirmed_ == past_.size(); }

  /// What is kept of units.
  std::size_t bytes() const { return bytes_; }
  std::size_t units() const { return past_.size(); }

private:
  struct past_unit {
    std::uint64_t number = 0;
    kept_sound sound;
    std::vector<inference::image_file> frames;
    int max_slice_nums = 1;
    bool force_listen = false;
    std::shared_ptr<const inference::unit_choices> choices;
    std::size_t bytes() const;
  };

  void unit_told(const inference::step_output& output);
  void delta_told(const inference::chat_delta& delta);
  void keep(past_unit unit);
  inference::submit_unit order_of(const past_unit& unit) const;

  bound most_;
  std::variant<std::monostate, inference::open_duplex, inference::open_chat> opening_;
  bool opened_ = false;
  bool overflown_ = false;
  std::vector<past_unit> past_;
  std::size_t bytes_ = 0;

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
