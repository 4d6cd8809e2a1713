#include "inference/engine/prefix_cache.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace parley::inference {

bool prompt_voice::operator==(const prompt_voice& other) const {
  return samples == other.samples || (samples && other.samples && *samples == *other.samples);
}

bool spoken_prompt::operator==(const spoken_prompt& other) const {
  return prefix == other.prefix && prompt_voice{voice} == prompt_voice{other.voice};
}

prefix_cache::prefix_cache(const llm::kv_pool& pool, std::size_t most) : prompts_(most), voices_(most) {
  pool.when_full([this] { return prompts_.drop_oldest(); });
}

const prefix_cache::prompt* prefix_cache::find(const spoken_prompt& what) {
  const auto* found = prompts_.find(what);
  if (found) ++hits_;
  return found;
}

std::optional<prefix_cache::making> prefix_cache::make(const spoken_prompt& what) {
  if (std::ranges::any_of(being_made_, [&](const auto* other) { return *other == what; })) return std::nullopt;
  being_made_.push_back(&what);
  ++misses_;
  return making(*this, std::prev(being_made_.end()));
}

void prefix_cache::put(spoken_prompt what, const llm::kv_cache& made, std::int64_t voice_rows) {
  try {
    prompts_.put(std::move(what), {made.keep(), voice_rows});
  } catch (const std::runtime_error&) {
    // No page is free for a copy of the last one, because sessions need them all.
  }
}

at::Tensor prefix_cache::heard(const pcm& voice) {
  const auto* rows = voices_.find(prompt_voice{voice});
  return rows ? *rows : at::Tensor();
}

int prefix_cache::own_pages() const {
  auto pages = 0;
  for (const auto& [what, prompt] : prompts_) pages += prompt.rows.own_pages();
  return pages;
}

} // namespace parley::inference
