#include "inference/audio/mel_windows.hpp"

#include <algorithm>
#include <limits>

namespace parley::inference::audio {

namespace {

constexpr std::int64_t half_window = mel_window_samples / 2;
/// Frames whose window crosses the left end of a buffer.
constexpr std::int64_t head_frames = (half_window + mel_hop_samples - 1) / mel_hop_samples;
/// How many samples after a left edge its first frames see.
constexpr std::int64_t head_samples = (head_frames - 1) * mel_hop_samples + half_window;
/// How far back the next append may need samples: for an unfinished window, or a left end whose first frames are
/// incomplete.
constexpr std::int64_t tail_samples = 2 * mel_window_samples;
/// Below this length the reference uses the fixed floor.
constexpr std::int64_t dynamic_samples = 5 * sample_rate;

std::int64_t window_begin(std::int64_t frame) {
  return frame * mel_hop_samples - half_window;
}

/// Frames of a buffer of n samples whose window does not cross the right end.
std::int64_t complete_frames(std::int64_t n) {
  return n < half_window ? 0 : (n - half_window) / mel_hop_samples + 1;
}

std::int64_t slide_frames(const mel_stream_config& config) {
  if (!config.sliding_window) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(config.slide_seconds * sample_rate) / mel_hop_samples);
}

float peak_of(const float* values, std::int64_t count) {
  return *std::max_element(values, values + count);
}

mel_stream::block& block_of(mel_stream& stream, std::int64_t number, std::int64_t first) {
  auto at = static_cast<std::size_t>(number - first);
  if (at >= stream.blocks.size()) stream.blocks.resize(at + 1);
  return stream.blocks[at];
}

/// Largest mel power of the buffer that begins with the first block.
float buffer_peak(const mel_stream& stream, float open_peak) {
  float peak = open_peak;
  for (std::size_t i = 0; i < stream.blocks.size(); ++i) {
    const auto& b = stream.blocks[i];
    bool edge = i == 0 && !b.head.empty();
    peak = std::max(
        {peak, b.rest_peak, edge ? peak_of(b.head.data(), static_cast<std::int64_t>(b.head.size())) : b.head_peak});
  }
  return peak;
}

} // namespace

void append_window(std::vector<float>& out, std::span<const float> samples, std::int64_t begin, std::int64_t length,
                   std::int64_t samples_begin) {
  auto end = samples_begin + static_cast<std::int64_t>(samples.size());
  if (begin >= samples_begin && begin + mel_window_samples <= end) {
    auto from = samples.begin() + (begin - samples_begin);
    out.insert(out.end(), from, from + mel_window_samples);
    return;
  }
  for (auto at = begin; at < begin + mel_window_samples; ++at) {
    auto mirrored = at < 0 ? -at : at >= length ? 2 * (length - 1) - at : at;
    out.push_back(mirrored < end ? samples[static_cast<std::size_t>(mirrored - samples_begin)] : 0.0F);
  }
}

std::int64_t window_plan::windows() const {
  return final_frames + heads * head_frames + open_frames;
}

window_plan plan_windows(mel_stream& stream, std::span<const float> samples, std::vector<float>& windows) {
  auto before = stream.total_samples;
  auto tail_begin = before - static_cast<std::int64_t>(stream.tail.size());
  stream.tail.insert(stream.tail.end(), samples.begin(), samples.end());
  stream.total_samples += static_cast<std::int64_t>(samples.size());
  auto total = stream.total_samples;
  window_plan plan;
  // With less than half a window there is nothing to mirror.
  if (total > half_window) {
    auto complete = complete_frames(total);
    for (auto frame = stream.next_frame; frame < complete; ++frame)
      append_window(windows, stream.tail, window_begin(frame), total, tail_begin);
    plan.final_frames = complete - stream.next_frame;

    // The first frames of the buffer that begins at sample s see s .. s + head_samples.
    if (stream.config.sliding_window) {
      auto slide = slide_frames(stream.config) * mel_hop_samples;
      plan.first_head_block = std::max<std::int64_t>(1, (before - head_samples + slide - 1) / slide);
      for (auto start = plan.first_head_block * slide; start + head_samples < total; start += slide, ++plan.heads) {
        auto shifted = std::span<const float>(stream.tail).subspan(static_cast<std::size_t>(start - tail_begin));
        for (std::int64_t frame = 0; frame < head_frames; ++frame)
          append_window(windows, shifted, window_begin(frame), total - start);
      }
    }

    auto all = total / mel_hop_samples;
    for (auto frame = complete; frame < all; ++frame)
      append_window(windows, stream.tail, window_begin(frame), total, tail_begin);
    plan.open_frames = std::max<std::int64_t>(0, all - complete);
  }
  auto size = static_cast<std::int64_t>(stream.tail.size());
  if (size > tail_samples) stream.tail.erase(stream.tail.begin(), stream.tail.end() - tail_samples);
  return plan;
}

power_chunk take_power(mel_stream& stream, const window_plan& plan, const float* power, int bins) {
  auto per_slide = slide_frames(stream.config);
  auto base_block = stream.base_samples / mel_hop_samples / per_slide;

  for (std::int64_t i = 0; i < plan.final_frames; ++i, power += bins) {
    auto frame = stream.next_frame++;
    auto& b = block_of(stream, frame / per_slide, base_block);
    auto& peak = frame % per_slide < head_frames ? b.head_peak : b.rest_peak;
    peak = std::max(peak, peak_of(power, bins));
    stream.power.insert(stream.power.end(), power, power + bins);
  }
  for (std::int64_t i = 0; i < plan.heads; ++i, power += head_frames * bins)
    block_of(stream, plan.first_head_block + i, base_block).head.assign(power, power + head_frames * bins);
  float open_peak = plan.open_frames > 0 ? peak_of(power, plan.open_frames * bins) : 0.0F;

  auto length = stream.total_samples - stream.base_samples;
  auto trigger = static_cast<std::int64_t>(stream.config.trigger_seconds * sample_rate);
  if (stream.config.sliding_window && length >= trigger && stream.blocks.size() > 1) {
    stream.blocks.pop_front();
    stream.base_samples += per_slide * mel_hop_samples;
    length -= per_slide * mel_hop_samples;
  }

  power_chunk chunk;
  auto& info = chunk.info;
  info.base_frame = stream.base_samples / mel_hop_samples;
  info.buffer_samples = length;
  info.dropped_samples = stream.base_samples;
  info.stable_frames = complete_frames(length);
  info.total_frames = length / mel_hop_samples;
  auto redundancy = stream.config.redundancy_frames;
  auto end = stream.core_end + stream.config.chunk_samples() / mel_hop_samples;
  if (stream.next_frame >= end + redundancy) {
    auto first = std::max(stream.power_begin, stream.core_end - redundancy);
    auto count = end + redundancy - first;
    auto from = stream.power.begin() + (first - stream.power_begin) * bins;
    chunk.power.assign(from, from + count * bins);
    chunk.peak = buffer_peak(stream, open_peak);
    chunk.dynamic = length >= dynamic_samples;
    info.emitted_frames = static_cast<int>(count);
    info.core_begin = stream.core_end;
    info.core_end = end;
    stream.core_end = end;
    ++stream.chunks;
    // The next chunk starts with the last redundancy frames of this one.
    auto keep = std::max<std::int64_t>(0, end - redundancy);
    stream.power.erase(stream.power.begin(), stream.power.begin() + (keep - stream.power_begin) * bins);
    stream.power_begin = keep;
  }
  info.chunk_number = stream.chunks;
  return chunk;
}

} // namespace parley::inference::audio
