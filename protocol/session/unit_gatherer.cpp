#include "protocol/session/unit_gatherer.hpp"

#include "protocol/limits.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace parley::protocol {

std::size_t bytes_of(const std::vector<text_message>& context) {
  constexpr std::size_t each_message = 16; // about what its marks cost
  std::size_t bytes = 0;
  for (const auto& each : context) bytes += each.text.size() + each_message;
  return bytes;
}

void unit_gatherer::append(append_event event, std::uint64_t ordinal, time_point now, std::vector<gathered_unit>& out) {
  if (!event.frames.empty()) {
    frame_slices_ = event.max_slice_nums.value_or(session_slices_);
    std::move(event.frames.begin(), event.frames.end(), std::back_inserter(frames_));
    if (frames_.size() > max_waiting_frames)
      frames_.erase(frames_.begin(), frames_.end() - static_cast<std::ptrdiff_t>(max_waiting_frames));
  }
  std::move(event.context.begin(), event.context.end(), std::back_inserter(context_));
  if (!event.samples) return;
  const bool first = !std::exchange(begun_, true);
  if (!partial_ && event.samples->size() == unit_samples) {
    auto samples = std::move(event.samples);
    out.push_back(finish(std::move(samples), event.force_listen, event, ordinal, now));
    return;
  }
  const std::vector<float>& samples = *event.samples;
  for (std::size_t done = 0; done < samples.size();) {
    if (!partial_) {
      partial_ = std::make_shared<std::vector<float>>();
      partial_->reserve(unit_samples);
      if (first && samples.size() < unit_samples) partial_->resize(unit_samples - samples.size());
      partial_forced_ = false;
    }
    const std::size_t count = std::min(samples.size() - done, unit_samples - partial_->size());
    const auto from = samples.begin() + static_cast<std::ptrdiff_t>(done);
    partial_->insert(partial_->end(), from, from + static_cast<std::ptrdiff_t>(count));
    partial_forced_ |= event.force_listen;
    done += count;
    if (partial_->size() == unit_samples)
      out.push_back(finish(std::exchange(partial_, nullptr), partial_forced_, event, ordinal, now));
  }
}

gathered_unit unit_gatherer::finish(pcm samples, bool forced, const append_event& of, std::uint64_t ordinal,
                                    time_point now) {
  gathered_unit unit{
      {std::move(samples), {}, session_slices_, forced, std::exchange(context_, {})}, ordinal, of.input_id, now};
  if (!frames_.empty()) {
    unit.max_slice_nums = frame_slices_;
    unit.frames = std::exchange(frames_, {});
  }
  return unit;
}

} // namespace parley::protocol
