#pragma once

#include "config/settings.hpp"

#include <string>

namespace parley::config {

/// All settings as a TOML file that `load_text` accepts, with the documentation of each key. `config/parley.toml` is
/// this text for the defaults.
std::string print(const settings& source);

} // namespace parley::config
