#include "base/printable.hpp"

#include "base/utf8.hpp"

#include <algorithm>

namespace parley::base {

namespace {

/// ASCII's control characters, those that Latin-1 adds, and the marks that break a line or turn its direction.
bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

} // namespace

std::string printable(std::string_view words, std::size_t most) {
  std::string shown;
  words = words.substr(0, most);
  while (!words.empty()) {
    const auto next = utf8::decode(words);
    shown += next.valid && !is_control(next.code) ? words.substr(0, next.size) : utf8::replacement;
    words.remove_prefix(next.size);
  }
  return std::string(utf8::truncate(shown, most));
}

} // namespace parley::base
