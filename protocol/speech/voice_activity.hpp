#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

// Where speech begins and ends in a stream of samples at 16 kHz.
namespace parley::protocol::speech {

inline constexpr int frame_ms = 20;
inline constexpr std::size_t frame_samples = 320; ///< at 16 kHz

/// Says of one frame after another whether it holds speech.
class speech_detector {
public:
  virtual ~speech_detector() = default;

  /// `frame`: `frame_samples` samples. `threshold`: 0 to 1, higher = louder speech is needed.
  virtual bool is_speech(std::span<const float> frame, double threshold) = 0;
};

/// How loud it is, and how loud the room is without anybody in it: the quietest moment of the last three seconds. Even
/// fast speech has one near the noise, while a fan or a hum has none below itself.
class loudness_meter {
public:
  struct reading {
    double loud_db;
    double floor_db; ///< before this frame
  };
  reading hear(std::span<const float> frame);

private:
  static constexpr double start_db = -60; ///< of full scale, like all here
  double smooth_db_ = start_db;
  std::array<double, 8> quietest_{start_db, start_db, start_db, start_db, start_db, start_db, start_db, start_db};
  int frames_ = 0;
};

/// By loudness above that of the room.
class loudness_detector final : public speech_detector {
public:
  bool is_speech(std::span<const float> frame, double threshold) override;

private:
  loudness_meter meter_;
};

/// How speech is told from everything else.
enum class voice_detection : std::uint8_t { loudness, silero };
std::unique_ptr<speech_detector> make_detector(voice_detection how);

/// What makes a turn.
struct turn_onset {
  int speech_ms = 60; ///< so much speech ...
  int pause_ms = 0;   ///< ... in which pauses as long as this may be; longer ones count against it
};

struct turn_rules {
  double threshold = 0.5;
  turn_onset onset{};
  int silence_ms = 500; ///< how much silence ends it
};

/// An end of a turn: `at_ms` counts the stream's sound from its beginning.
struct turn_edge {
  bool begins = false;
  std::int64_t at_ms = 0;
};

/// Finds turns. Pure: time is the sound that it was fed.
class turn_finder {
public:
  explicit turn_finder(std::unique_ptr<speech_detector> detector) : detector_(std::move(detector)) {}

  /// Takes samples; returns the first edge in them, and how many of them it used up. Call it again with the rest.
  struct found {
    std::optional<turn_edge> edge{};
    std::size_t used = 0;
  };
  found feed(std::span<const float> samples, const turn_rules& rules);

  bool in_turn() const { return in_turn_; }

  /// Ends a turn at once, without an edge.
  void give_up();

  /// Sound so far.
  std::int64_t now_ms() const { return frames_ * frame_ms; }

private:
  std::optional<turn_edge> take_frame(const turn_rules& rules);

  std::unique_ptr<speech_detector> detector_;
  std::vector<float> frame_; ///< what has not made a frame yet
  std::int64_t frames_ = 0;
  int speech_ms_ = 0;  ///< outside a turn; falls by all of a pause that is too long
  int silence_ms_ = 0; ///< since the last speech
  std::int64_t speech_began_ms_ = 0;
  bool in_turn_ = false;
};

} // namespace parley::protocol::speech
