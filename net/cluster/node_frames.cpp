#include "net/cluster/node_frames.hpp"

#include <algorithm>

namespace parley::net {

bool node_frames::feed(std::string_view bytes) {
  constexpr std::size_t length_from = 4; // offset in the header: four bytes, big-endian
  constexpr std::size_t length_to = 8;
  while (!bytes.empty()) {
    if (payload_left_ > 0) {
      const auto now = std::min(payload_left_, bytes.size());
      payload_left_ -= now;
      bytes.remove_prefix(now);
      if (held_ > 0) held_ = payload_left_ > 0 ? held_ + now : 0;
      continue;
    }
    if (header_ >= length_from && header_ < length_to)
      length_ = length_ << 8 | static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    if (++header_ < header_bytes) continue;
    header_ = 0;
    payload_left_ = length_;
    length_ = 0;
    if (payload_left_ > largest_) return false;
    if (payload_left_ > trusted) held_ = 1;
  }
  return true;
}

} // namespace parley::net
