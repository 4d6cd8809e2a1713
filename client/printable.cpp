#include "client/printable.hpp"

#include <algorithm>

namespace parley::client {

std::string printable(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are encoded as C2 80 to C2 9F; some terminals treat them as escape sequences.
    const bool c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1) ++i;
    if (c1 || byte == 0x7F || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      shown += "\uFFFD";
    } else {
      shown += text[i];
    }
  }
  return shown;
}

std::string printable_line(std::string_view text) {
  std::string shown = printable(text);
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return shown;
}

} // namespace parley::client
