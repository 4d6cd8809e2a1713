#include "protocol/speech/turn_sound.hpp"

#include "protocol/speech/sound.hpp"

#include <algorithm>

namespace parley::protocol::speech {
namespace {

constexpr std::size_t lead = samples_per_ms * 400; ///< before the first speech
constexpr std::size_t outside =
    samples_per_ms * 4000; ///< kept while nobody speaks, until it is known that somebody did

} // namespace

void turn_sound::hear(std::span<const float> samples, const std::optional<turn_edge>& edge, const turn_finder& finder) {
  const auto keep_last = [&](std::size_t most) {
    if (kept_.size() > most) kept_.erase(kept_.begin(), kept_.end() - static_cast<std::ptrdiff_t>(most));
  };
  const bool in_turn = finder.in_turn() || edge;
  const auto room = in_turn ? most_ - std::min(most_, kept_.size()) : samples.size();
  const auto taken = samples.first(std::min(samples.size(), room));
  kept_.insert(kept_.end(), taken.begin(), taken.end());
  if (edge && edge->begins)
    keep_last(lead + static_cast<std::size_t>(finder.now_ms() - edge->at_ms) * samples_per_ms);
  else if (!in_turn && kept_.size() > 2 * outside)
    keep_last(outside);
}

} // namespace parley::protocol::speech
