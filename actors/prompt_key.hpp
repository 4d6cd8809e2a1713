#pragma once

#include "inference/engine.hpp"
#include "inference/unit.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace parley::actors {

/// What a duplex session begins with, system prompt and reference voice, as one number: an engine keeps the rows of
/// such a beginning for the next session that has the same. Never 0. Two beginnings with one key only cost a wrong
/// preference.
using prompt_key = std::uint64_t;

/// None for what begins with nothing to share.
std::optional<prompt_key> prompt_of(const inference::command& open);

/// The beginnings that a worker's sessions had last, the newest first: those whose rows its engine keeps, unless its
/// memory was needed for sessions.
class recent_prompts {
public:
  void note(prompt_key key) {
    std::erase(keys_, key);
    keys_.insert(keys_.begin(), key);
    if (keys_.size() > inference::kept_prompts) keys_.pop_back();
  }
  const std::vector<prompt_key>& keys() const { return keys_; }

private:
  std::vector<prompt_key> keys_;
};

} // namespace parley::actors
