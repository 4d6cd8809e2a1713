#include "protocol/call/answer.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace parley::protocol::call {
namespace {

constexpr std::uint32_t best_priority = (126u << 24) | (65'535u << 8) | 255u; ///< of a host, the only component

std::string candidate(std::size_t index, const std::string& address, std::uint16_t port) {
  const auto priority = best_priority - (static_cast<std::uint32_t>(index) << 8);
  return "a=candidate:" + std::to_string(index + 1) + " 1 UDP " + std::to_string(priority) + " " + address + " " +
         std::to_string(port) + " typ host\r\n";
}

} // namespace

std::string told_at(std::string_view sdp, std::span<const std::string> addresses, std::uint16_t port) {
  if (addresses.empty()) return std::string(sdp);
  std::string out;
  bool told = false;
  while (!sdp.empty()) {
    const auto end = std::min(sdp.find('\n'), sdp.size() - 1) + 1;
    const auto line = sdp.substr(0, end);
    sdp.remove_prefix(end);
    if (line.starts_with("c=")) {
      const bool is_v6 = addresses.front().find(':') != std::string::npos;
      out.append(is_v6 ? "c=IN IP6 " : "c=IN IP4 ").append(addresses.front()).append("\r\n");
    } else if (!line.starts_with("a=candidate:")) {
      out.append(line);
    } else if (!std::exchange(told, true)) {
      for (std::size_t i = 0; i < addresses.size(); ++i) out += candidate(i, addresses[i], port);
    }
  }
  return out;
}

} // namespace parley::protocol::call
