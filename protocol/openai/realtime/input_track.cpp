#include "protocol/openai/realtime/input_track.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace parley::protocol::openai::realtime {
namespace {

constexpr std::size_t most_kept = item_limits{}.sound_samples;
constexpr std::size_t usual_samples = 2 * speech::model_input_rate; ///< of an append: room for more is not kept
constexpr int lead_ms = 100;                                        ///< kept before a turn, besides its padding
constexpr int eager_silence_ms = 500;
constexpr int patient_silence_ms = 1000;

speech::turn_rules rules_for(const turn_detection& turns, const speech::turn_onset& onset) {
  speech::turn_rules rules;
  rules.onset = onset;
  if (turns.type == turn_detection::kind::server_vad) {
    rules.threshold = turns.threshold;
    rules.silence_ms = turns.silence_duration_ms;
  } else {
    rules.silence_ms = turns.eagerness == "low" ? patient_silence_ms : eager_silence_ms;
  }
  return rules;
}

void drop_front(std::vector<std::int16_t>& from, std::size_t most) {
  if (from.size() > most) from.erase(from.begin(), from.end() - static_cast<std::ptrdiff_t>(most));
}

} // namespace

input_track::input_track(std::unique_ptr<speech::speech_detector> detector, base::byte_budget::share held)
    : decoder_(speech::sound_format{}), finder_(std::move(detector)), held_(std::move(held)) {}

bool input_track::make_room(double seconds) {
  const auto more = static_cast<std::size_t>(seconds * speech::model_input_rate) * sizeof(std::int16_t);
  return held_.grow_to(kept_.size() * sizeof(std::int16_t) + more);
}

result<std::size_t> input_track::append(std::string_view base64_text, const speech::sound_format& format) {
  if (format != decoder_.format()) decoder_ = speech::sound_decoder(format);
  const auto samples = decoder_.feed(base64_text, waiting_);
  if (!samples) return invalid_value("audio", samples.error());
  uncommitted_ms_ += 1000.0 * static_cast<double>(*samples) / format.rate;
  return *samples;
}

void input_track::append_samples(std::span<const float> samples) {
  waiting_.insert(waiting_.end(), samples.begin(), samples.end());
  uncommitted_ms_ += static_cast<double>(samples.size()) / static_cast<double>(speech::samples_per_ms);
}

void input_track::append_silence(int ms) {
  waiting_.resize(waiting_.size() + speech::samples_per_ms * static_cast<std::size_t>(ms));
}

std::optional<input_track::heard> input_track::next(const turn_detection& turns, const speech::turn_onset& onset) {
  if (taken_ == waiting_.size()) {
    waiting_.clear();
    if (waiting_.capacity() > usual_samples) waiting_.shrink_to_fit();
    held_.shrink_to(kept_.size() * sizeof(std::int16_t));
    taken_ = 0;
    return std::nullopt;
  }
  heard out;
  const auto rest = std::span(std::as_const(waiting_)).subspan(taken_);
  std::size_t used = rest.size();
  if (turns.type != turn_detection::kind::none) {
    const auto found = finder_.feed(rest, rules_for(turns, onset));
    out.edge = found.edge;
    used = found.used;
  }
  const auto piece = rest.first(used);
  out.samples = piece;
  keep(piece, turns, out.edge);
  taken_ += used;
  return out;
}

void input_track::keep(std::span<const float> samples, const turn_detection& turns,
                       const std::optional<speech::turn_edge>& edge) {
  append_compact(samples, kept_);
  if (kept_.size() > most_kept + most_kept / 10) drop_front(kept_, most_kept); // not with every append
  if (turns.type == turn_detection::kind::none) return;
  const auto lead = static_cast<std::size_t>(turns.prefix_padding_ms + lead_ms) * speech::samples_per_ms;
  if (edge && edge->begins) {
    const auto speech = static_cast<std::size_t>(finder_.now_ms() - edge->at_ms) * speech::samples_per_ms;
    drop_front(kept_, lead + speech);
  } else if (!edge && !finder_.in_turn() && kept_.size() > 4 * lead) {
    drop_front(kept_, 2 * lead);
  }
}

compact_sound input_track::commit() {
  // What has not been gone through yet stays counted here.
  const auto bytes = kept_.size() * sizeof(std::int16_t);
  const auto rest = held_.bytes() - std::min(held_.bytes(), bytes);
  auto held = std::exchange(held_, held_.open_another());
  held.shrink_to(bytes);
  held_.grow_to(rest);
  auto out = counted(std::vector<std::int16_t>(kept_.begin(), kept_.end()), std::move(held));
  forget();
  return out;
}

void input_track::clear() {
  held_.shrink_to(held_.bytes() - std::min(held_.bytes(), kept_.size() * sizeof(std::int16_t)));
  forget();
}

void input_track::forget() {
  kept_ = {};
  uncommitted_ms_ = 0;
  finder_.give_up();
}

} // namespace parley::protocol::openai::realtime
