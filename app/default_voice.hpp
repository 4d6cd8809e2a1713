#pragma once

#include "config/settings.hpp"
#include "net/server.hpp"

#include <filesystem>

namespace parley::app {

/// The default voice for clients that ask for it: `voice.default`, else the model's own, without samples if it has
/// none. Throws config::settings_error when it cannot be read as WAV.
net::named_voice load_default_voice(const config::settings& settings, const std::filesystem::path& model);

} // namespace parley::app
