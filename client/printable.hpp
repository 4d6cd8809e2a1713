#pragma once

#include <string>
#include <string_view>

namespace parley::client {

/// A server's text made safe for a terminal: control characters except line feed and tab become U+FFFD.
std::string printable(std::string_view text);

/// The same as a single line, with line feeds and tabs as spaces.
std::string printable_line(std::string_view text);

} // namespace parley::client
