#pragma once

#include <filesystem>
#include <iosfwd>

namespace parley::inference::verify {

/// Replays every golden case of a folder on a checkpoint and prints one line per case (report.hpp). The files tell
/// whether it is the thinker's folder, the talker's or the end-to-end one. Returns 0 if nothing failed, 1 otherwise.
/// Throws std::runtime_error if the folders can't be read.
int run_verify(const std::filesystem::path& model, const std::filesystem::path& goldens, std::ostream& out);

} // namespace parley::inference::verify
