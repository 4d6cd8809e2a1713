#include "protocol/call/rtp.hpp"

namespace parley::protocol::call {
namespace {

constexpr std::size_t header_bytes = 12;
constexpr unsigned first_rtcp_type = 64, last_rtcp_type = 95; ///< RFC 5761 4: these are RTCP

std::uint32_t number_at(std::span<const std::byte> bytes, std::size_t at, std::size_t size) {
  std::uint32_t out = 0;
  for (const auto each : bytes.subspan(at, size)) out = (out << 8) | std::to_integer<std::uint32_t>(each);
  return out;
}

void append_number(std::vector<std::byte>& to, std::uint32_t number, int size) {
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8)
    to.push_back(static_cast<std::byte>((number >> shift) & 0xFF));
}

} // namespace

std::optional<rtp_packet> read_rtp(std::span<const std::byte> bytes) {
  if (bytes.size() < header_bytes) return std::nullopt;
  const auto first = number_at(bytes, 0, 1), second = number_at(bytes, 1, 1);
  const bool padded = (first & 0x20) != 0, extended = (first & 0x10) != 0;
  if (first >> 6 != 2) return std::nullopt;
  rtp_packet out;
  out.payload_type = static_cast<std::uint8_t>(second & 0x7F);
  if (out.payload_type >= first_rtcp_type && out.payload_type <= last_rtcp_type) return std::nullopt;
  out.marker = (second & 0x80) != 0;
  out.sequence = static_cast<std::uint16_t>(number_at(bytes, 2, 2));
  out.timestamp = number_at(bytes, 4, 4);
  out.source = number_at(bytes, 8, 4);
  std::size_t begin = header_bytes + 4 * (first & 0x0F), end = bytes.size();
  if (extended) {
    if (begin + 4 > end) return std::nullopt;
    begin += 4 + 4 * number_at(bytes, begin + 2, 2);
  }
  if (begin > end) return std::nullopt;
  if (padded) {
    const auto padding = number_at(bytes, end - 1, 1);
    if (padding == 0 || begin + padding > end) return std::nullopt;
    end -= padding;
  }
  if (end == begin || end - begin > most_rtp_payload) return std::nullopt;
  out.payload = bytes.subspan(begin, end - begin);
  return out;
}

std::vector<std::byte> write_rtp(const rtp_packet& packet) {
  std::vector<std::byte> out;
  out.reserve(header_bytes + packet.payload.size());
  append_number(out, 0x80, 1);
  append_number(out, (packet.marker ? 0x80U : 0U) | packet.payload_type, 1);
  append_number(out, packet.sequence, 2);
  append_number(out, packet.timestamp, 4);
  append_number(out, packet.source, 4);
  out.insert(out.end(), packet.payload.begin(), packet.payload.end());
  return out;
}

} // namespace parley::protocol::call
