#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

namespace parley::client {

/// Seconds that a player typically buffers before a turn begins to play.
inline constexpr double usual_playback_lead = 0.2;

/// What a person hears through a client with a playback buffer: sound is played in order of arrival, each turn from its
/// first sound on, and stops if the model listens again before its turn has ended (docs/protocol.md 6.7). Times are
/// relative to any fixed moment and never decrease. Pure: no clock, no samples.
class listener {
public:
  using seconds = std::chrono::duration<double>;
  static constexpr double rate = 24000; ///< Hz

  /// Playback of a turn begins `lead` after its first sound arrived, as a margin for sounds that come late.
  explicit listener(seconds lead = seconds(0)) : lead_(lead) {}

  /// A stretch of received sound that plays without a break.
  struct stretch {
    seconds begin;            ///< when it is heard
    std::size_t first_sample; ///< index among all received samples
    std::size_t samples;
  };

  /// Call when that many samples have arrived.
  void sound(seconds now, std::size_t samples);

  /// Ends the turn: buffered sound is played to its end, and the next sound begins a new turn.
  void end_of_turn() { turn_open_ = false; }

  /// The model listens: drops the sound that an open turn has not played yet.
  void silence(seconds now);

  /// In playback order, without overlaps.
  const std::vector<stretch>& heard() const { return heard_; }

  /// Number of gaps within turns: the buffer ran empty before the next sound arrived.
  std::size_t gaps() const { return gaps_; }
  seconds gap_time() const { return gap_time_; }

  /// How much sound arrived, and how much of it is played.
  seconds received_time() const { return seconds(static_cast<double>(received_) / rate); }
  seconds heard_time() const;

private:
  seconds lead_;
  std::vector<stretch> heard_;
  seconds end_{0}; ///< when everything that arrived has been played
  std::size_t received_ = 0, gaps_ = 0;
  seconds gap_time_{0};
  bool turn_open_ = false;
};

} // namespace parley::client
