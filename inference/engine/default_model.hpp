#pragma once

#include <filesystem>

namespace parley::inference {

/// The embedded default model, `models/tiny-omni`: below the working directory, or of the source or install tree that the
/// running program belongs to. Throws std::runtime_error when it is not there.
std::filesystem::path default_model_directory();

} // namespace parley::inference
