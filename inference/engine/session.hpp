#pragma once

#include "inference/engine/task.hpp"
#include "inference/llm/kv_pool.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/random.hpp"

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

namespace parley::inference {

/// One session: what it holds whatever it does, the task that it has under way, and those that wait for that one. Kinds
/// of sessions add what they carry from task to task. The engine's thread alone touches it.
struct session {
  session(session_id number, std::uint64_t seed_of_all, llm::kv_cache keys)
      : id(number), seed(seed_of_all), cache(std::move(keys)), chance(seed, substream::text) {}
  virtual ~session() = default;
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  const session_id id;
  const std::uint64_t seed;
  llm::kv_cache cache;
  random_stream chance; ///< of its text
  llm::sampling_scratch scratch;

  std::unique_ptr<task> running;             ///< null = it has nothing to do
  std::deque<std::unique_ptr<task>> waiting; ///< oldest first
  bool over = false;                         ///< it has failed, and is destroyed at the end of the pass
};

} // namespace parley::inference
