#pragma once

#include "config/settings.hpp"

#include <filesystem>
#include <memory>
#include <vector>

namespace parley::app {

/// The default voice for clients that ask for it, 16 kHz mono: `voice.default`, else the model's own, null if it has
/// none. Throws config::settings_error when it cannot be read as WAV.
std::shared_ptr<const std::vector<float>> load_default_voice(const config::settings& settings,
                                                             const std::filesystem::path& model);

} // namespace parley::app
