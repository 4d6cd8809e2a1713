#pragma once

#include <filesystem>
#include <iosfwd>

namespace parley::inference::verify {

/// Replays every golden case of a folder on a checkpoint and prints one line per case (report.hpp). Whether it is the
/// thinker's, the talker's or end to end is recognised by the files. Returns 0 when nothing failed, 1 otherwise. Throws
/// std::runtime_error when the folders can't be read.
int run_verify(const std::filesystem::path& model, const std::filesystem::path& goldens, std::ostream& out);

} // namespace parley::inference::verify
