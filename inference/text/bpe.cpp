#include "inference/text/bpe.hpp"

#include <queue>

namespace parley::inference::text {

namespace {

struct symbol {
  bpe::id token;
  int previous;
  int next; // -1 for the last one
};

struct candidate {
  std::int32_t rank;
  int at;
  bpe::id joined;
};

struct later {
  bool operator()(const candidate& a, const candidate& b) const {
    return a.rank != b.rank ? a.rank > b.rank : a.at > b.at;
  }
};

} // namespace

void bpe::add_merge(id left, id right, id joined) {
  merges_.insert(std::uint64_t(std::uint32_t(left)) << 32 | std::uint32_t(right), {next_rank_++, joined});
}

void bpe::encode(std::string_view word, std::vector<std::int64_t>& out) const {
  auto count = static_cast<int>(word.size());
  std::vector<symbol> symbols;
  symbols.reserve(word.size());
  for (int i = 0; i < count; ++i)
    symbols.push_back(
        {byte_ids_[static_cast<unsigned char>(word[static_cast<std::size_t>(i)])], i - 1, i + 1 < count ? i + 1 : -1});

  std::vector<candidate> storage;
  storage.reserve(word.size());
  std::priority_queue<candidate, std::vector<candidate>, later> queue(later{}, std::move(storage));
  auto offer = [&](int at) {
    const auto& left = symbols[static_cast<std::size_t>(at)];
    if (left.next < 0) return;
    if (const auto* m = find(left.token, symbols[static_cast<std::size_t>(left.next)].token))
      queue.push({m->rank, at, m->joined});
  };
  for (int i = 0; i + 1 < count; ++i) offer(i);

  while (!queue.empty()) {
    auto best = queue.top();
    queue.pop();
    auto& left = symbols[static_cast<std::size_t>(best.at)];
    if (left.token < 0 || left.next < 0) continue;
    auto& right = symbols[static_cast<std::size_t>(left.next)];
    // The pair may have changed since it was pushed.
    const auto* m = find(left.token, right.token);
    if (m == nullptr || m->joined != best.joined) continue;
    left.token = best.joined;
    right.token = -1;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = best.at;
    if (left.previous >= 0) offer(left.previous);
    offer(best.at);
  }
  for (const auto& s : symbols)
    if (s.token >= 0) out.push_back(s.token);
}

} // namespace parley::inference::text
