#pragma once

#include <cstdint>
#include <vector>

namespace parley::inference::audio {

inline constexpr int sample_rate = 16000;
inline constexpr int mel_window_samples = 400; ///< n_fft
inline constexpr int mel_hop_samples = 160;

/// How a stream is cut (THINKER.md 3.3). The defaults are the duplex ones.
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

/// The reference's counters after an append, in frames unless said otherwise.
struct mel_stream_info {
  int chunk_number = 0;             ///< chunks emitted so far
  int emitted_frames = 0;           ///< in this append; 0 = nothing
  std::int64_t stable_frames = 0;   ///< of the buffer that no later sample can change
  std::int64_t total_frames = 0;    ///< of the buffer
  std::int64_t base_frame = 0;      ///< global index of the buffer's first frame
  std::int64_t buffer_samples = 0;  ///< virtual length: the samples themselves are not kept
  std::int64_t dropped_samples = 0; ///< on the left, by slides
  std::int64_t core_begin = 0;      ///< global frames of the emitted chunk without its redundancy
  std::int64_t core_end = 0;
};

/// A session's streaming state. Of the 30 s buffer that the reference transforms anew every second, it keeps the last
/// samples (one window), the mel power of the last frames, and one number per older frame: its largest mel power, which
/// the dynamic clip level needs. Copyable; `mel_extractor::stream` advances it.
struct mel_stream {
  explicit mel_stream(mel_stream_config cut = {});

  /// Samples that the next append should have.
  int next_need() const;

  mel_stream_config config;
  std::int64_t total_samples = 0; ///< ever appended
  std::int64_t base_samples = 0;  ///< ever dropped by slides; a multiple of the slide
  std::int64_t next_frame = 0;    ///< first global frame whose interior power is not computed yet
  std::int64_t emitted_frames = 0;
  int chunks = 0;

  std::vector<float> tail; ///< the last samples, from global sample tail_begin on
  std::int64_t tail_begin = 0;
  std::vector<float> power; ///< mel power of the last frames, from global frame power_begin on, [frames][bins]
  std::int64_t power_begin = 0;
  std::vector<float> frame_peak; ///< largest mel power of each frame from peak_begin on
  std::int64_t peak_begin = 0;
  /// Largest power of the frames that mirror the left edge, for buffers that begin at a later slide: the reference sees
  /// a mirrored edge there after the slide. [slide][edge frame]
  std::vector<std::vector<float>> edge_peaks;
  std::int64_t edge_slides_begin = 0; ///< slide number of edge_peaks.front()
};

} // namespace parley::inference::audio
