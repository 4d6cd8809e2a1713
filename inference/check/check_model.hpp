#pragma once

#include "config/settings.hpp"

#include <filesystem>
#include <iosfwd>

namespace parley::inference::check {

/// What `check_model` does beyond looking at the folder.
struct check_options {
  bool hash = false;              ///< compare the SHA-256 of files whose published hash is known
  bool run = false;               ///< read all numbers, and answer once, as a server with `settings` would
  config::settings settings = {}; ///< for `run`; but `worker.assets` always applies
};

/// Checks whether and how `parley serve` would run a model folder, and prints a line with advice for each finding.
/// Returns 0 if it would run correctly, 1 otherwise. Nothing in the folder makes it throw.
int check_model(const std::filesystem::path& model, const check_options& options, std::ostream& out);

} // namespace parley::inference::check
