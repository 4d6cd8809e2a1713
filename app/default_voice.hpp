#pragma once

#include "config/settings.hpp"

#include <memory>
#include <vector>

namespace parley::app {

/// The voice that a session gets when it brings none: `voice.default`, else `assets/default_voice.wav` of the model folder.
/// 16 kHz mono; null when the model has none. Throws std::runtime_error when the file named in the settings can't be used.
std::shared_ptr<const std::vector<float>> load_default_voice(const config::settings& settings);

} // namespace parley::app
