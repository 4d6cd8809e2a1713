#pragma once

#include "protocol/events.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley::protocol::guest {

/// The user's sound, and what a camera sees, on its way to a duplex session: cut into units, of which few are passed on before their answers
/// come, because the session drops what comes too fast. Nothing is dropped here up to `most_units`.
class duplex_feed {
public:
  explicit duplex_feed(std::size_t most_units) : most_units_(most_units) {}

  /// Takes samples at 16 kHz. Returns how many units had to be dropped, oldest first.
  std::size_t hear(std::span<const float> samples);

  /// A picture that goes with the next append. Only the newest few stay.
  void show(image_file picture);

  /// Text that the model reads before the next second. False if there is too much of it: then only another session can
  /// be told.
  bool tell(conversation::role who, std::string text);

  /// Whether text was told of which it is not certain yet that the model has read it.
  bool telling() const { return told_bytes_ > 0; }

  /// The next append breaks off what the model says, and is due at once.
  void force_listen() { force_ = true; }

  /// The input to send now; call it until there is none. Text waits while `speaking`: in the middle of
  /// what the model says it would not be read, but make the model lose its thread.
  std::optional<append_event> next(bool speaking = false);

  /// The session has answered a unit.
  void answered();

  /// A new session begins: it hears what waits, and sees the newest picture.
  void begin();

  /// Forgets what waits, except the newest `samples`.
  void keep_last(std::size_t samples);

  std::size_t waiting_samples() const { return waiting_.size() - taken_; }

private:
  void take(std::size_t samples);

  static constexpr std::size_t unit = 16'000;
  static constexpr std::size_t most_in_flight = 2;

  std::size_t most_units_;
  std::vector<float> waiting_;
  std::size_t taken_ = 0; ///< of `waiting_`, from its front
  std::deque<image_file> pictures_;
  std::size_t sent_ = 0;     ///< samples sent to this session
  std::size_t answered_ = 0; ///< units
  bool force_ = false;
  std::vector<text_message> context_; ///< not sent yet
  std::size_t told_bytes_ = 0;        ///< since the last unit that had read all
  std::size_t told_at_ = 0;           ///< units sent when text came last: the one after them reads it
};

} // namespace parley::protocol::guest
