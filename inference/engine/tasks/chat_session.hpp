#pragma once

#include "inference/engine/session.hpp"

#include <cstdint>
#include <utility>

namespace parley::inference {

/// What a chat session carries from turn to turn: where chance stands, and nothing else. Its tasks are `chat_task`s.
struct chat_session final : session {
  chat_session(session_id number, std::uint64_t seed_of_all, llm::kv_cache keys)
      : session(number, seed_of_all, std::move(keys)), spoken_seeds(seed, substream::speech_tokens) {}

  /// Where its random streams stand, and taking them there.
  rng_state rng_now() const { return {chance.where(), spoken_seeds.where(), {}}; }
  void go_on_from(const rng_state& where) {
    chance.go_on_from(where.text);
    spoken_seeds.go_on_from(where.speech);
  }

  random_stream spoken_seeds; ///< one for the speech of each turn without a seed of its own
};

} // namespace parley::inference
