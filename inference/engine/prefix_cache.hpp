#pragma once

#include "base/lru_cache.hpp"
#include "inference/llm/kv_pool.hpp"
#include "inference/text/tokenizer.hpp"
#include "inference/vocabulary.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <utility>
#include <vector>

namespace parley::inference {

/// A reference voice, compared by its samples; of most others it differs in the hash.
struct prompt_voice {
  prompt_voice() = default;
  explicit prompt_voice(pcm of);

  bool operator==(const prompt_voice& other) const;
  explicit operator bool() const { return samples != nullptr; }

  pcm samples; ///< 16 kHz; null = none
  std::size_t hash = 0;
};

/// The beginning of a duplex session: its texts and its reference voice.
struct spoken_prompt {
  std::vector<token_id> prefix;
  prompt_voice voice;

  bool operator==(const spoken_prompt& other) const = default;
};

/// The prompts used last: keys and values of whole prompts, whose pages are shared by all sessions with that prompt,
/// and the encoded rows of voices. Prompts are evicted before the pool runs out of pages. If several sessions need the
/// same prompt, the first one makes it. Used by the engine's thread only.
class prefix_cache {
public:
  struct prompt {
    llm::kv_cache rows;
    std::int64_t voice_rows; ///< how many of the rows belong to the reference voice
  };

  /// While it lives, its holder makes this prompt and other sessions wait for it.
  class making {
  public:
    making(making&& other) noexcept : shelf_(std::exchange(other.shelf_, nullptr)), place_(other.place_) {}
    making& operator=(making&&) = delete;
    ~making() {
      if (shelf_) shelf_->being_made_.erase(place_);
    }

  private:
    friend class prefix_cache;
    using list = std::list<const spoken_prompt*>;
    making(prefix_cache& shelf, list::iterator place) : shelf_(&shelf), place_(place) {}

    prefix_cache* shelf_;
    list::iterator place_;
  };

  /// Keeps up to `most` prompts and as many voices. Once this is destroyed, no more pages may be taken from the pool.
  prefix_cache(const llm::kv_pool& pool, std::size_t most);

  prefix_cache(const prefix_cache&) = delete;
  prefix_cache& operator=(const prefix_cache&) = delete;

  /// Null = not cached. Valid until a prompt is put or any cache of the pool grows, because a full pool evicts prompts.
  const prompt* find(const spoken_prompt& what);

  /// The right to make a prompt that is not cached; none while another session has it, whose voice `what` shares from then
  /// on: who asks again compares no samples. `what` must outlive the right.
  std::optional<making> make(spoken_prompt& what);

  /// Caches the prompt in `made`, if the pool has room for it.
  void put(spoken_prompt what, const llm::kv_cache& made, std::int64_t voice_rows);

  /// The encoded rows of a voice, [tokens, hidden] in the language model's dtype; undefined = not cached.
  at::Tensor heard(const prompt_voice& voice);
  void put_heard(const prompt_voice& voice, at::Tensor rows) { voices_.put(voice, std::move(rows)); }

  /// Number of pages that only this cache holds.
  int own_pages() const;

  std::uint64_t hits() const { return hits_; }     ///< prompts that were found
  std::uint64_t misses() const { return misses_; } ///< prompts that had to be prefilled

private:
  base::lru_cache<spoken_prompt, prompt> prompts_;
  base::lru_cache<prompt_voice, at::Tensor> voices_;
  making::list being_made_;
  std::uint64_t hits_ = 0, misses_ = 0;
};

} // namespace parley::inference
