#pragma once

namespace parley::app {

/// One line: the version, and the commit, libraries and kind of build behind it. cmake/WriteVersion.cmake writes the definition.
extern const char* const version;

} // namespace parley::app
