#pragma once

#include "config/settings.hpp"

#include <filesystem>
#include <iosfwd>

namespace parley::inference::check {

/// What `check_model` is to do beyond looking.
struct check_options {
  bool hash = false;              ///< SHA-256 of the files whose published one is known
  bool run = false;               ///< reads all numbers, and answers once, as a server with `settings` would
  config::settings settings = {}; ///< of `run`; `worker.assets` counts without it, too
};

/// Looks at a model folder as `parley serve` would use it and prints a line for each finding, an advice behind it. Returns
/// 0 when it would run, 1 when it would not, or when its answers would be wrong. Throws nothing for what lies in the folder.
int check_model(const std::filesystem::path& model, const check_options& options, std::ostream& out);

} // namespace parley::inference::check
