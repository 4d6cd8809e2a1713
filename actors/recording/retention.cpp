#include "actors/recording/retention.hpp"

namespace parley::actors {

std::vector<recording_facts> to_forget(const std::vector<recording_facts>& newest_first, const retention& keep,
                                       std::int64_t now_ms) {
  constexpr double day_ms = 86'400'000;
  std::vector<recording_facts> out;
  std::int64_t kept = 0;
  bool full = false;
  for (const auto& each : newest_first) {
    const bool grows = each.state == "recording";
    const bool old = keep.days > 0 && static_cast<double>(now_ms - each.started_ms) > keep.days * day_ms;
    full = full || (keep.bytes > 0 && kept + each.bytes > keep.bytes);
    if (!grows && (old || full)) {
      out.push_back(each);
    } else {
      kept += each.bytes;
    }
  }
  return out;
}

} // namespace parley::actors
