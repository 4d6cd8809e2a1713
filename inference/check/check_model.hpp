#pragma once

#include "config/settings.hpp"

#include <filesystem>
#include <iosfwd>

namespace parley::inference::check {

/// What `check_model` does beyond looking at the folder.
struct check_options {
  bool hash = false;              ///< compare SHA-256 for files whose published one is known
  bool run = false;               ///< read all numbers, and answer once, as a server with `settings` would
  config::settings settings = {}; ///< for `run`; `worker.assets` applies without it, too
};

/// Looks at a model folder the way `parley serve` would use it, and prints a line for each finding, with advice.
/// Returns 0 when it would run, 1 when it would not or when its answers would be wrong. Nothing in the folder makes it
/// throw.
int check_model(const std::filesystem::path& model, const check_options& options, std::ostream& out);

} // namespace parley::inference::check
