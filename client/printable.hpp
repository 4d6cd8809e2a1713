#pragma once

#include <string>
#include <string_view>

namespace parley::client {

/// Text of a server as a terminal may see it: control characters but line feed and tab become U+FFFD.
std::string printable(std::string_view text);

/// The same on one line, line feeds and tabs as blanks.
std::string printable_line(std::string_view text);

} // namespace parley::client
