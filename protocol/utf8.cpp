#include "protocol/utf8.hpp"

#include <cstring>

namespace parley::protocol::utf8 {

std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  auto lead = byte(0);
  auto second = byte(1);
  if (lead < 0x80) return text.empty() ? 0 : 1;
  if (lead < 0xC2 || lead > 0xF4 || !continues(1)) return 0;
  if (lead < 0xE0) return 2;
  // Overlong forms, surrogates and code points past U+10FFFF all show in the second byte.
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  if (!continues(2)) return 0;
  if (lead < 0xF0) return 3;
  return continues(3) ? 4 : 0;
}

bool valid(std::string_view text) {
  constexpr std::uint64_t high_bits = 0x8080'8080'8080'8080;
  while (!text.empty()) {
    if (std::uint64_t eight = 0; text.size() >= sizeof eight) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & high_bits) == 0) { // base64, mostly
        text.remove_prefix(sizeof eight);
        continue;
      }
    }
    const auto length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

void append(std::uint32_t code_point, std::string& out) {
  auto add = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  auto tail = [&](int shift) { add(0x80 | ((code_point >> shift) & 0x3F)); };
  if (code_point < 0x80) {
    add(code_point);
  } else if (code_point < 0x800) {
    add(0xC0 | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    add(0xE0 | (code_point >> 12));
    tail(6);
    tail(0);
  } else {
    add(0xF0 | (code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string_view truncate(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

} // namespace parley::protocol::utf8
