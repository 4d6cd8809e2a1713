#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace parley::actors {

/// CRC-32C (Castagnoli) of `bytes`, as in RFC 3720, appendix B.4. `before`: the result for the bytes before these.
inline std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0) {
  // Eight tables, so that eight bytes are taken at a time.
  static constexpr auto tables = [] {
    constexpr std::uint32_t reversed_polynomial = 0x82F63B78;
    std::array<std::array<std::uint32_t, 256>, 8> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? reversed_polynomial : 0);
      made[0][i] = crc;
    }
    for (std::size_t t = 1; t < 8; ++t)
      for (std::size_t i = 0; i < 256; ++i) made[t][i] = (made[t - 1][i] >> 8) ^ made[0][made[t - 1][i] & 0xFF];
    return made;
  }();
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  std::uint32_t crc = ~before;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint32_t next = 0;
    for (std::size_t k = 0; k < 4; ++k) next ^= tables[7 - k][(byte(i + k) ^ (crc >> (8 * k))) & 0xFF];
    for (std::size_t k = 4; k < 8; ++k) next ^= tables[7 - k][byte(i + k)];
    crc = next;
  }
  for (; i < bytes.size(); ++i) crc = (crc >> 8) ^ tables[0][(crc ^ byte(i)) & 0xFF];
  return ~crc;
}

} // namespace parley::actors
