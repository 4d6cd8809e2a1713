#include "base/printable.hpp"

#include "base/utf8.hpp"

#include <array>
#include <cstdio>

namespace parley::base {

namespace {

/// ASCII's control characters and those that Latin-1 adds.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0);
}

/// Line and paragraph separators, and marks of direction.
bool moves_text(char32_t code) {
  return code == 0x2028 || code == 0x2029 || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_shown(const utf8::decoded& next) {
  return next.valid && !is_control(next.code) && !moves_text(next.code);
}

void append_hex(const char* format, unsigned value, std::string& out) {
  std::array<char, 16> escape{};
  std::snprintf(escape.data(), escape.size(), format, value);
  out += escape.data();
}

void append_escape(const utf8::decoded& next, std::string_view bytes, std::string& out) {
  if (next.valid && next.code == '\n') {
    out += "\\n";
  } else if (next.valid && next.code == '\t') {
    out += "\\t";
  } else if (next.valid && moves_text(next.code)) {
    append_hex("\\u%04x", next.code, out);
  } else {
    for (const char byte : bytes) append_hex("\\x%02x", static_cast<unsigned char>(byte), out);
  }
}

} // namespace

std::string printable(std::string_view words, std::size_t most) {
  std::string shown;
  words = words.substr(0, most);
  while (!words.empty()) {
    const auto next = utf8::decode(words);
    shown += is_shown(next) ? words.substr(0, next.size) : utf8::replacement;
    words.remove_prefix(next.size);
  }
  return std::string(utf8::truncate(shown, most));
}

std::string escaped(std::string_view words) {
  std::string out;
  out.reserve(words.size());
  while (!words.empty()) {
    const auto next = utf8::decode(words);
    const auto bytes = words.substr(0, next.size);
    if (is_shown(next)) {
      out += bytes;
    } else {
      append_escape(next, bytes, out);
    }
    words.remove_prefix(next.size);
  }
  return out;
}

} // namespace parley::base
