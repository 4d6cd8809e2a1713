#pragma once

#include "inference/audio/mel_stream.hpp"

#include <cstdint>
#include <span>
#include <vector>

// The bookkeeping of streaming mel features, without torch: which windows an append makes computable, and what to do
// with their mel power.
namespace parley::inference::audio {

/// Appends to `out` the n_fft samples from `begin` of a signal of `length` samples, mirrored at both ends. Only
/// `samples`, which start at `samples_begin`, are available; what follows them is zero.
void append_window(std::vector<float>& out, std::span<const float> samples, std::int64_t begin, std::int64_t length,
                   std::int64_t samples_begin = 0);

/// The windows that one append requires, in the order of the members.
struct window_plan {
  std::int64_t final_frames = 0;     ///< frames that have become final, starting at stream.next_frame
  std::int64_t first_head_block = 0; ///< first of `heads` slides whose mirrored edge became known
  std::int64_t heads = 0;
  std::int64_t open_frames = 0; ///< frames at the right end, mirrored; they matter for the clip level only

  std::int64_t windows() const;
};

/// Adds the samples (16 kHz) to the stream and appends the windows to be transformed.
window_plan plan_windows(mel_stream& stream, std::span<const float> samples, std::vector<float>& windows);

/// A chunk ready to be scaled.
struct power_chunk {
  mel_stream_info info;
  std::vector<float> power; ///< [emitted_frames][bins]; empty when there is no chunk
  float peak = 0;           ///< largest mel power of the whole buffer
  bool dynamic = false;     ///< whether `peak` determines the clip level
};

/// Takes the mel power [plan.windows()][bins] of the planned windows, slides the buffer, and emits at most one chunk.
power_chunk take_power(mel_stream& stream, const window_plan& plan, const float* power, int bins);

} // namespace parley::inference::audio
