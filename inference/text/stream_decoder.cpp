#include "base/utf8.hpp"
#include "inference/text/tokenizer.hpp"

#include <utility>

namespace parley::inference {

namespace {

/// Number of bytes before the characters at the end that are, or may turn out to be, U+FFFD.
std::size_t settled_bytes(std::string_view bytes) {
  std::size_t settled = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    auto next = base::utf8::decode(bytes.substr(at));
    at += next.size;
    if (next.code != base::utf8::replacement_character) settled = at;
  }
  return settled;
}

} // namespace

stream_decoder::stream_decoder(tokenizer source, bool skip_special)
    : source_(std::move(source)), skip_special_(skip_special) {}

std::string stream_decoder::push(std::span<const token_id> ids) {
  for (auto id : ids)
    if (!skip_special_ || !source_.is_special(id)) pending_ += source_.bytes(id);
  auto settled = settled_bytes(pending_);
  auto result = base::utf8::lossy(std::string_view(pending_).substr(0, settled));
  pending_.erase(0, settled);
  return result;
}

std::string stream_decoder::finish() {
  return base::utf8::lossy(std::exchange(pending_, {}));
}

} // namespace parley::inference
