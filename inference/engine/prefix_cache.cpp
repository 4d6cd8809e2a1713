#include "inference/engine/prefix_cache.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <span>
#include <stdexcept>
#include <string_view>

namespace parley::inference {

prompt_voice::prompt_voice(pcm of) : samples(std::move(of)) {
  if (!samples) return;
  const auto bytes = std::as_bytes(std::span(*samples));
  hash = std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool prompt_voice::operator==(const prompt_voice& other) const {
  if (samples == other.samples) return true;
  return samples && other.samples && hash == other.hash && *samples == *other.samples;
}

prefix_cache::prefix_cache(const llm::kv_pool& pool, std::size_t most) : prompts_(most), voices_(most) {
  pool.when_full([this] { return prompts_.drop_oldest(); });
}

const prefix_cache::prompt* prefix_cache::find(const spoken_prompt& what) {
  const auto* found = prompts_.find(what);
  if (found) ++hits_;
  return found;
}

std::optional<prefix_cache::making> prefix_cache::make(spoken_prompt& what) {
  const auto other = std::ranges::find_if(being_made_, [&](const auto* each) { return *each == what; });
  if (other != being_made_.end()) {
    what.voice = (*other)->voice;
    return std::nullopt;
  }
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

at::Tensor prefix_cache::heard(const prompt_voice& voice) {
  const auto* rows = voices_.find(voice);
  return rows ? *rows : at::Tensor();
}

int prefix_cache::own_pages() const {
  auto pages = 0;
  for (const auto& [what, prompt] : prompts_) pages += prompt.rows.own_pages();
  return pages;
}

} // namespace parley::inference
