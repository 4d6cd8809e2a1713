#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace parley::protocol::realtime {

/// Reference voices by the names that clients use: WAV files as base64.
using voice_map = std::map<std::string, std::string, std::less<>>;

/// Empty for a name that has no voice of its own.
inline std::string_view voice_named(const voice_map* voices, std::string_view name) {
  if (voices == nullptr) return {};
  const auto found = voices->find(name);
  return found == voices->end() ? std::string_view() : std::string_view(found->second);
}

} // namespace parley::protocol::realtime
