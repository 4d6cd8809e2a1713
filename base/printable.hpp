#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace parley::base {

/// Words of somebody else as one line of a log: well-formed, at most `most` bytes, with U+FFFD for each control character, also
/// those that move or colour a terminal.
std::string printable(std::string_view words, std::size_t most = 256);

} // namespace parley::base
