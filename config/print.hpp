#pragma once

#include "config/settings.hpp"

#include <string>

namespace parley::config {

/// All settings as a TOML file that `load_text` takes, each key with its documentation. `config/parley.toml` is this
/// text of the defaults.
std::string print(const settings& source);

} // namespace parley::config
