#pragma once

#include "conversation/engine.hpp"
#include "inference/engine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace parley::actors {

/// A hash of the beginning of a duplex session, system prompt and reference voice: an engine caches the rows of such a
/// beginning for the next session with the same one. Never 0. A collision only costs a wrong preference.
using prefix_hash = std::uint64_t;

/// None if there is nothing to share.
std::optional<prefix_hash> prompt_of(const conversation::command& open);

/// The prompts of a worker's most recent sessions, newest first: its engine has these cached, unless it needed the
/// memory for sessions.
class recent_prompts {
public:
  void note(prefix_hash key) {
    std::erase(keys_, key);
    keys_.insert(keys_.begin(), key);
    if (keys_.size() > inference::kept_prompts) keys_.pop_back();
  }
  const std::vector<prefix_hash>& keys() const { return keys_; }

private:
  std::vector<prefix_hash> keys_;
};

} // namespace parley::actors
