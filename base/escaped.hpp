#pragma once

#include <string>
#include <string_view>

namespace parley::base {

/// Text of others as a part of one line, safe for a terminal: control characters, line breaks, marks that change the
/// direction of text and what is no UTF-8 become escapes such as \n, \x1b and \u202e. Everything else stays as it is.
std::string escaped(std::string_view text);

} // namespace parley::base
