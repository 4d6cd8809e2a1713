#include "inference/text/added_tokens.hpp"

namespace parley::inference::text {

void added_token_trie::add(std::string_view token, std::int64_t id) {
  if (token.empty()) return;
  std::uint32_t node = 0;
  for (char byte : token) {
    if (const auto* child = children_.find(edge(node, byte))) {
      node = *child;
      continue;
    }
    auto fresh = static_cast<std::uint32_t>(ids_.size());
    children_.insert(edge(node, byte), fresh);
    ids_.push_back(-1);
    node = fresh;
  }
  ids_[node] = id;
}

added_token_trie::match added_token_trie::find(std::string_view text, std::size_t from) const {
  for (auto begin = from; begin < text.size(); ++begin) {
    match best{begin, begin, -1};
    std::uint32_t node = 0;
    for (auto at = begin; at < text.size(); ++at) {
      const auto* child = children_.find(edge(node, text[at]));
      if (child == nullptr) break;
      node = *child;
      if (ids_[node] >= 0) best = {begin, at + 1, ids_[node]};
    }
    if (best.end > best.begin) return best;
  }
  return {text.size(), text.size(), -1};
}

} // namespace parley::inference::text
