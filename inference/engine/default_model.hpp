#pragma once

#include <filesystem>
#include <string_view>

namespace parley::inference {

/// `models/NAME` below the working directory, or in the source or install tree of the running program: "nano" (trained)
/// or "tiny-omni" (random weights, every part of the architecture). Throws std::runtime_error if it does not exist.
std::filesystem::path embedded_model(std::string_view name);

/// The embedded model that serves if none is named.
std::filesystem::path default_model_directory();

} // namespace parley::inference
