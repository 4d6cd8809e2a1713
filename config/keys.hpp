#pragma once

#include "config/settings.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

// The only table of settings. The file, `--set`, printing and `config/parley.toml` all use it.
namespace parley::config {

/// Where a key's value lives in a `settings`.
using field = std::variant<bool*, int*, std::uint16_t*, std::size_t*, double*, std::string*,
                           std::optional<std::uint64_t>*, dtype*, speech_dtype*, quantization*, window_mode*,
                           log_format*, tls_mode*, openai_door*, voice_activity*, vad_answers*, transcription*>;

/// One setting: its name, where its value is stored, and which values are allowed.
struct key {
  std::string_view name; ///< `section.key`
  field (*member)(settings&);
  std::string_view doc; ///< its text in `config/parley.toml`: one or several lines
  double low = 0;       ///< range of numbers, both ends included
  double high = 0;
  bool (*allowed)(const std::string&) = nullptr; ///< allowed texts; null = any
  std::string_view allowed_words = {};           ///< the same in words
};

/// In the order of `config/parley.toml`: the keys of a section are adjacent.
std::span<const key> keys();

/// Null if there is no such key.
const key* find_key(std::string_view name);

/// A value as it comes from a file or a command line.
using value = std::variant<bool, std::int64_t, double, std::string>;

/// Sets a key. Returns nothing on success; otherwise nothing has changed, and it returns the complaint in plain words
/// without the key's name: "must be …".
std::optional<std::string> assign(settings& target, const key& which, const value& given);

/// A key's value as TOML. An unset `engine.seed` is "none".
std::string to_toml(const settings& source, const key& which);

} // namespace parley::config
