#include "actors/log/crc32c.hpp"

#include <array>
#include <cstddef>
#include <cstring>

namespace parley::actors {

namespace {

constexpr auto table = [] {
  constexpr std::uint32_t reversed_polynomial = 0x82F63B78;
  std::array<std::uint32_t, 256> made{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? reversed_polynomial : 0);
    made[i] = crc;
  }
  return made;
}();

std::uint32_t by_table(std::string_view bytes, std::uint32_t crc) {
  for (const char each : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<std::uint8_t>(each)) & 0xFF];
  return crc;
}

#if defined(__x86_64__)
/// Eight bytes in one instruction.
__attribute__((target("sse4.2"))) std::uint32_t by_instruction(std::string_view bytes, std::uint32_t crc) {
  std::uint64_t wide = crc;
  for (; bytes.size() >= sizeof wide; bytes.remove_prefix(sizeof wide)) {
    std::uint64_t next = 0;
    std::memcpy(&next, bytes.data(), sizeof next);
    wide = __builtin_ia32_crc32di(wide, next);
  }
  return by_table(bytes, static_cast<std::uint32_t>(wide));
}
#endif

} // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t before) {
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~by_instruction(bytes, ~before);
#endif
  return ~by_table(bytes, ~before);
}

} // namespace parley::actors
