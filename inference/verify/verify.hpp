#pragma once

#include "config/settings.hpp"

#include <filesystem>
#include <iosfwd>
#include <string>

namespace parley::inference::verify {

/// What the model computes with. Tolerances are those of float32, and ids, texts and decisions must be the recorded ones
/// in any format: another format shows how far off it is.
struct verify_options {
  std::string device = "cpu"; ///< as `worker.device`
  config::dtype dtype = config::dtype::float32;
  bool plain_attention = false; ///< `varlen_attention::prefer_loop`
};

/// Replays every golden case of a folder on a checkpoint and prints one line per case (report.hpp). The files tell
/// whether it is the thinker's folder, the talker's or the end-to-end one. Returns 0 if nothing failed, 1 otherwise.
/// Throws std::runtime_error if the folders can't be read.
int run_verify(const std::filesystem::path& model, const std::filesystem::path& goldens, std::ostream& out,
               const verify_options& how = {});

} // namespace parley::inference::verify
