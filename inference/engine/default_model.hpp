#pragma once

#include <filesystem>
#include <string_view>

namespace parley::inference {

/// `models/NAME` below the working directory, or of the source or install tree that the running program belongs to:
/// "nano" (trained) or "tiny-omni" (random weights, every part of the architecture). Throws std::runtime_error when it
/// is not there.
std::filesystem::path embedded_model(std::string_view name);

/// The embedded model that serves when none is named.
std::filesystem::path default_model_directory();

} // namespace parley::inference
