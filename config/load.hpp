#pragma once

#include "config/settings.hpp"

#include <filesystem>
#include <stdexcept>
#include <string_view>

namespace parley::config {

/// An invalid settings file or override. `what()` is one line that names the key, and for a file `FILE:LINE`.
class settings_error : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// Applies a TOML file to `target`; keys that the file does not name keep their values. \throws settings_error for a
/// file that cannot be read, bad TOML, an unknown key, a wrong type or an impossible value.
void load_file(settings& target, const std::filesystem::path& file);

/// The same from text; `name` identifies it in errors. \throws settings_error
void load_text(settings& target, std::string_view toml, std::string_view name);

/// Applies one `section.key=value` from the command line (`--set`). Texts need no quotes. \throws settings_error
void apply_override(settings& target, std::string_view assignment);

/// Applies the variables `PARLEY_SECTION_KEY` of an environment ("NAME=value", terminated by null), e.g.
/// PARLEY_LIMITS_AUDIO_SECONDS. Names that do not begin with one of our sections are ignored. \throws settings_error
void apply_environment(settings& target, const char* const* environment);

/// Checks the keys that depend on each other. For complete settings. \throws settings_error
void check_whole(const settings& settings);

/// Applies a key that has its own flag, e.g. `--port`: errors name the flag. \throws settings_error
void apply_flag(settings& target, std::string_view flag, std::string_view key, std::string_view value);

} // namespace parley::config
