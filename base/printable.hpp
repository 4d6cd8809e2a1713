#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// Words of somebody else that cannot end a line, turn its direction, or move or colour a terminal.
namespace parley::base {

/// To keep: well-formed, at most `most` bytes, with U+FFFD for what is not shown.
std::string printable(std::string_view words, std::size_t most = 256);

/// To write down whole: escapes such as \n, \x1b and \u202e for what is not shown, everything else as it is.
std::string escaped(std::string_view words);

} // namespace parley::base
