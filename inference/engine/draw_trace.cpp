#include "inference/engine/draw_trace.hpp"

#include "inference/logger.hpp"

#include <algorithm>
#include <sstream>

namespace parley::inference {

void draw_trace::unit_begun(session_id id) {
  text_[id].clear();
  speech_[id].clear();
}

void draw_trace::unit_done(session_id id, std::uint64_t seed, std::uint64_t unit,
                           std::span<const std::int64_t> spoken) {
  log_trace(line(id, seed, unit, spoken));
}

std::string draw_trace::line(session_id id, std::uint64_t seed, std::uint64_t unit,
                             std::span<const std::int64_t> spoken) const {
  std::ostringstream line;
  line << "draws of unit " << unit << ", seed " << seed << ": text";
  if (const auto found = text_.find(id); found != text_.end())
    for (const auto& draw : found->second) line << ' ' << draw.margin;
  line << "; speech";
  const auto found = speech_.find(id);
  const auto sampled = found == speech_.end() ? std::size_t{0} : std::min(found->second.size(), spoken.size());
  const auto known = spoken.size() - sampled;
  for (std::size_t i = 0; i < spoken.size(); ++i) {
    line << ' ' << spoken[i];
    if (i >= known) line << ':' << found->second[i - known];
  }
  return line.str();
}

void draw_trace::session_ended(session_id id) {
  text_.erase(id);
  speech_.erase(id);
}

} // namespace parley::inference
