#include "inference/text/utf8.hpp"

namespace parley::inference::text {

decoded_character decode_character(std::string_view bytes) {
  auto at = [&](std::size_t i) -> unsigned { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0; };
  auto lead = at(0);
  if (lead < 0x80) return {char32_t{lead}, 1, true};
  // Lead byte → length and the range of the second byte; the others are 80..BF.
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
    if (lead == 0xED) high = 0x9F; // surrogates
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    size = 4;
    code = lead & 0x07;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F; // past U+10FFFF
  } else {
    return {replacement_character, 1, false};
  }
  for (std::size_t i = 1; i < size; ++i) {
    auto next = at(i);
    if (i >= bytes.size() || next < low || next > high) return {replacement_character, i, false};
    code = code << 6 | (next & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {code, size, true};
}

void append_utf8(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | code >> 18);
    out += static_cast<char>(0x80 | (code >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

std::string lossy_utf8(std::string_view bytes) {
  std::string result;
  result.reserve(bytes.size());
  while (!bytes.empty()) {
    auto next = decode_character(bytes);
    if (next.valid)
      result += bytes.substr(0, next.size);
    else
      append_utf8(result, replacement_character);
    bytes.remove_prefix(next.size);
  }
  return result;
}

} // namespace parley::inference::text
