#pragma once

#include "conversation/media.hpp"

#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace parley::protocol::speech {

/// Reference voices by the names that clients use, at 16 kHz.
using voice_map = std::map<std::string, conversation::pcm, std::less<>>;

/// Null for a name that has no voice of its own.
inline conversation::pcm voice_named(const voice_map* voices, std::string_view name) {
  if (voices == nullptr) return nullptr;
  const auto found = voices->find(name);
  return found == voices->end() ? nullptr : found->second;
}

} // namespace parley::protocol::speech
