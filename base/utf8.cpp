#include "base/utf8.hpp"

#include <cstdint>
#include <cstring>

namespace parley::base::utf8 {

decoded decode(std::string_view bytes) {
  const auto at = [&](std::size_t i) -> unsigned {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
  };
  const auto lead = at(0);
  if (lead < 0x80) return {char32_t{lead}, 1, true};
  // Lead byte → length and the range of the second byte; the other bytes are 80..BF. The second byte reveals overlong
  // forms, surrogates and code points past U+10FFFF.
  std::size_t size = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  char32_t code = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    size = 2;
    code = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    size = 3;
    code = lead & 0x0F;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    code = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {replacement_character, 1, false};
  }
  for (std::size_t i = 1; i < size; ++i) {
    const auto next = at(i);
    if (i >= bytes.size() || next < low || next > high) return {replacement_character, i, false};
    code = code << 6 | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {code, size, true};
}

std::size_t sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto first = decode(text);
  return first.valid ? first.size : 0;
}

bool valid(std::string_view text) {
  constexpr std::uint64_t high_bits = 0x8080'8080'8080'8080;
  while (!text.empty()) {
    if (std::uint64_t eight = 0; text.size() >= sizeof eight) {
      std::memcpy(&eight, text.data(), sizeof eight);
      if ((eight & high_bits) == 0) { // fast path, mostly for base64
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

void append(char32_t code, std::string& out) {
  const auto add = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  const auto tail = [&](int shift) { add(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    add(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    add(0xF0 | (code >> 18));
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

std::string lossy(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto next = decode(bytes);
    result += next.valid ? bytes.substr(0, next.size) : replacement;
    bytes.remove_prefix(next.size);
  }
  return result;
}

} // namespace parley::base::utf8
