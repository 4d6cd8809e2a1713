#include "protocol/speech/voice_activity.hpp"

#include "protocol/speech/silero_detector.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace parley::protocol::speech {
namespace {

constexpr double quietest_db = -75; ///< digital silence counts as this
constexpr double lowest_speech_db = -45;
constexpr double highest_floor_db = -30;
constexpr double smoothing = 0.4; ///< share of a new frame
constexpr int block_frames = 20;  ///< 400 ms

double loudness_db(std::span<const float> frame) {
  double power = 0;
  for (const float x : frame) power += static_cast<double>(x) * x;
  power /= static_cast<double>(frame.size());
  return std::max(quietest_db, 10 * std::log10(power + 1e-12));
}

} // namespace

loudness_meter::reading loudness_meter::hear(std::span<const float> frame) {
  const double loud = loudness_db(frame);
  const double floor = std::min(*std::min_element(quietest_.begin(), quietest_.end()), highest_floor_db);
  smooth_db_ += smoothing * (loud - smooth_db_);
  if (++frames_ % block_frames == 0) {
    std::rotate(quietest_.begin(), quietest_.begin() + 1, quietest_.end());
    quietest_.back() = smooth_db_;
  }
  quietest_.back() = std::min(quietest_.back(), smooth_db_);
  return {loud, floor};
}

bool loudness_detector::is_speech(std::span<const float> frame, double threshold) {
  const auto now = meter_.hear(frame);
  return now.loud_db > std::max(now.floor_db + 6 + 12 * threshold, lowest_speech_db);
}

std::unique_ptr<speech_detector> make_detector(voice_detection how) {
  if (how == voice_detection::silero) return std::make_unique<silero_detector>();
  return std::make_unique<loudness_detector>();
}

turn_finder::found turn_finder::feed(std::span<const float> samples, const turn_rules& rules) {
  found out;
  while (out.used < samples.size()) {
    const auto rest = samples.subspan(out.used);
    const auto piece = rest.first(std::min(rest.size(), frame_samples - frame_.size()));
    frame_.insert(frame_.end(), piece.begin(), piece.end());
    out.used += piece.size();
    if (frame_.size() < frame_samples) break;
    out.edge = take_frame(rules);
    frame_.clear();
    if (out.edge) break;
  }
  return out;
}

std::optional<turn_edge> turn_finder::take_frame(const turn_rules& rules) {
  const bool speech = detector_->is_speech(frame_, rules.threshold);
  const std::int64_t began = now_ms();
  ++frames_;
  silence_ms_ = speech ? 0 : silence_ms_ + frame_ms;
  if (!in_turn_) {
    if (speech && speech_ms_ == 0) speech_began_ms_ = began;
    if (speech) speech_ms_ += frame_ms;
    const bool too_long = silence_ms_ > rules.onset.pause_ms, before = silence_ms_ - frame_ms > rules.onset.pause_ms;
    if (too_long) speech_ms_ = std::max(0, speech_ms_ - (before ? frame_ms : silence_ms_));
    if (speech_ms_ < rules.onset.speech_ms || !speech) return std::nullopt;
    in_turn_ = true;
    return turn_edge{true, speech_began_ms_};
  }
  if (silence_ms_ < std::max(rules.silence_ms, frame_ms)) return std::nullopt;
  give_up();
  return turn_edge{false, now_ms()};
}

void turn_finder::give_up() {
  in_turn_ = false;
  speech_ms_ = 0;
  silence_ms_ = 0;
}

} // namespace parley::protocol::speech
