#include "protocol/openai/realtime/output_buffer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace parley::protocol::openai::realtime {
namespace {

using exact_ms = std::chrono::duration<double, std::milli>;

constexpr double spoken_samples_per_ms = 24;

time_point later(time_point from, double ms) {
  return from + std::chrono::duration_cast<time_point::duration>(exact_ms(ms));
}

} // namespace

void output_buffer::tell(std::string_view what, const std::string& response_id) {
  out_.event("output_audio_buffer." + std::string(what), [&](auto& event) { event.text("response_id", response_id); });
}

void output_buffer::play(const std::string& response_id, const std::string& item_id, pcm sound, time_point now) {
  tick(now);
  const double ms = static_cast<double>(sound->size()) / spoken_samples_per_ms;
  const auto begins = parts_.empty() ? now : std::max(now, parts_.back().ends);
  if (parts_.empty() || parts_.back().item_id != item_id) parts_.push_back({response_id, item_id, 0, begins, begins});
  auto& last = parts_.back();
  last.ms += ms;
  last.ends = later(begins, ms);
  sent_.push_back(std::move(sound));
  tick(now);
}

void output_buffer::finished(const std::string& response_id, time_point now) {
  for (auto& each : parts_) each.finished = each.finished || each.response_id == response_id;
  tick(now);
}

bool output_buffer::is_last_of_response(std::size_t index) const {
  return index + 1 == parts_.size() || parts_[index + 1].response_id != parts_[index].response_id;
}

void output_buffer::tick(time_point now) {
  while (!parts_.empty()) {
    auto& first = parts_.front();
    if (!first.begun) {
      if (now < first.begins) return;
      first.begun = true;
      if (begun_ != first.response_id) tell("started", begun_ = first.response_id);
    }
    const bool last = is_last_of_response(0);
    // A part that is followed by another is over; the last one of a response may go on.
    if (now < first.ends || (last && !first.finished)) return;
    if (last) tell("stopped", std::exchange(begun_, {}));
    parts_.pop_front();
  }
}

std::optional<time_point> output_buffer::due() const {
  if (parts_.empty()) return std::nullopt;
  const auto& first = parts_.front();
  if (!first.begun) return first.begins;
  if (is_last_of_response(0) && !first.finished) return std::nullopt;
  return first.ends;
}

std::vector<output_buffer::cut_item> output_buffer::clear(time_point now) {
  tick(now);
  std::vector<cut_item> out;
  for (const auto& each : parts_) {
    const auto left = exact_ms(each.ends - std::max(now, each.begins)).count();
    if (left > 0) out.push_back({each.item_id, std::max(0.0, each.ms - left)});
  }
  if (!parts_.empty()) {
    sent_.clear();
    sent_.push_back(nullptr);
    tell("cleared", parts_.front().response_id);
  }
  parts_.clear();
  begun_.clear();
  return out;
}

} // namespace parley::protocol::openai::realtime
