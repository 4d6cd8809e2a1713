#pragma once

#include <cstdint>
#include <deque>
#include <vector>

namespace parley::inference::audio {

// For all sound that the model hears (docs/model/thinker.md 3.1).
inline constexpr int sample_rate = 16000;      ///< Hz
inline constexpr int mel_window_samples = 400; ///< n_fft
inline constexpr int mel_hop_samples = 160;    ///< distance of two frames: 10 ms

/// How a stream is cut (docs/model/thinker.md 3.3). The defaults are those of duplex. After a slide, the buffer must
/// still hold more than a chunk.
struct mel_stream_config {
  int chunk_ms = 1000;
  int first_chunk_ms = 1035;
  int redundancy_frames = 2; ///< extra frames on both sides of a chunk, for the convolutions (20 ms)
  bool sliding_window = true;
  double trigger_seconds = 30.0; ///< the buffer slides when it reaches this length ...
  double slide_seconds = 10.0;   ///< ... by this much

  /// Samples of the first append (1035 ms cut to whole frames: 16 480) and of every later one (16 000).
  int first_samples() const;
  int chunk_samples() const;
};

/// The reference's counters after an append, in frames unless stated otherwise.
struct mel_stream_info {
  int chunk_number = 0;             ///< chunks emitted so far
  int emitted_frames = 0;           ///< in this append; 0 = nothing
  std::int64_t stable_frames = 0;   ///< frames of the buffer that later samples cannot change
  std::int64_t total_frames = 0;    ///< length of the buffer
  std::int64_t base_frame = 0;      ///< global index of the buffer's first frame
  std::int64_t buffer_samples = 0;  ///< length of the reference's buffer
  std::int64_t dropped_samples = 0; ///< dropped on the left by slides
  std::int64_t core_begin = 0;      ///< global frames of the emitted chunk without its redundancy
  std::int64_t core_end = 0;
};

/// A session's streaming state. Instead of the 30 s buffer that the reference transforms again every second, it keeps
/// the last samples (a little more than one window), the mel power of the frames not yet emitted, and the largest power
/// in every slide's worth of frames, which is all that the dynamic clip level needs: about 40 KB. Copyable;
/// `mel_extractor::stream` advances it.
struct mel_stream {
  explicit mel_stream(mel_stream_config cut = {}) : config(cut) {}

  /// Number of samples that the next append should have.
  int next_need() const;

  /// The frames between two places where the buffer may begin after a slide. Once the buffer has slid, the reference
  /// sees a mirrored edge there, so the first frames have two values.
  struct block {
    float head_peak = 0; ///< largest mel power of the first frames, ignoring the edge
    float rest_peak = 0; ///< largest mel power of the other frames
    std::vector<float>
        head; ///< mel power of the first frames with the mirrored edge, [frame][bin]; empty = not known yet
  };

  mel_stream_config config;
  std::int64_t total_samples = 0; ///< samples ever appended
  std::int64_t base_samples = 0;  ///< samples dropped by slides
  std::int64_t next_frame = 0;    ///< first global frame whose final power is not known yet
  std::int64_t core_end = 0;      ///< end of what has been emitted, without redundancy
  int chunks = 0;                 ///< emitted chunks

  std::vector<float> tail;  ///< the last samples
  std::vector<float> power; ///< [frame][bin], from global frame power_begin on
  std::int64_t power_begin = 0;
  std::deque<block> blocks; ///< starting with the block that begins at base_samples
};

} // namespace parley::inference::audio
