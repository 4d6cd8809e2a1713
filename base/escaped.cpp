#include "base/escaped.hpp"

#include "base/utf8.hpp"

#include <array>
#include <cstdio>

namespace parley::base {

namespace {

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

/// Line and paragraph separators, and marks of direction.
bool moves_text(char32_t code) {
  return code == 0x2028 || code == 0x2029 || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

void append_hex(const char* format, unsigned value, std::string& out) {
  std::array<char, 16> escape{};
  std::snprintf(escape.data(), escape.size(), format, value);
  out += escape.data();
}

} // namespace

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const auto [code, size, valid] = utf8::decode(text);
    const auto bytes = text.substr(0, size);
    text.remove_prefix(size);
    if (valid && code == '\n') {
      out += "\\n";
    } else if (valid && code == '\t') {
      out += "\\t";
    } else if (valid && moves_text(code)) {
      append_hex("\\u%04x", code, out);
    } else if (valid && !is_control(code)) {
      out += bytes;
    } else {
      for (const char byte : bytes) append_hex("\\x%02x", static_cast<unsigned char>(byte), out);
    }
  }
  return out;
}

} // namespace parley::base
