#include "inference/text/byte_alphabet.hpp"

#include "base/utf8.hpp"

#include <array>

namespace parley::inference::text {

namespace {

constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// Printable bytes represent themselves, the others use U+0100 onwards.
struct alphabet {
  std::array<char32_t, 256> forward{};
  std::array<short, 512> backward{};

  constexpr alphabet() {
    backward.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      auto code = is_printable(byte) ? char32_t{byte} : next++;
      forward[byte] = code;
      backward[code] = static_cast<short>(byte);
    }
  }
};

constexpr alphabet table;

} // namespace

char32_t character_of(unsigned char byte) {
  return table.forward[byte];
}

std::optional<std::string> bytes_of(std::string_view token) {
  std::string result;
  while (!token.empty()) {
    auto next = base::utf8::decode(token);
    if (!next.valid || next.code >= table.backward.size() || table.backward[next.code] < 0) return std::nullopt;
    result += static_cast<char>(table.backward[next.code]);
    token.remove_prefix(next.size);
  }
  return result;
}

} // namespace parley::inference::text
