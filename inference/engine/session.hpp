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

/// One session: its resources, the running task, and the tasks waiting behind it. Derived sessions add what they carry
/// from task to task. Used by the engine's thread only.
struct session {
  session(session_id number, std::uint64_t seed_of_all, llm::kv_cache keys)
      : id(number), seed(seed_of_all), cache(std::move(keys)), chance(seed, substream::text) {}
  virtual ~session() = default;
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  const session_id id;
  const std::uint64_t seed;
  llm::kv_cache cache;
  random_stream chance; ///< for its text
  llm::sampling_scratch scratch;

  std::uint64_t arrival = 0; ///< sessions are numbered as they open
  int most_pages = 0;        ///< the most pages that its cache has held

  std::unique_ptr<task> running;             ///< null = idle
  std::deque<std::unique_ptr<task>> waiting; ///< oldest first
  /// It began on another engine, and what was said there is still being replayed.
  bool is_moved() const {
    const auto replays = [](const task& t) { return t.kind() == work_kind::replay; };
    return running && (replays(*running) || (!running->is_unit() && !waiting.empty() && replays(*waiting.front())));
  }

  bool over = false; ///< it has failed and will be destroyed at the end of the pass
};

} // namespace parley::inference
