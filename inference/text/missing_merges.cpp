#include "inference/text/missing_merges.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace parley::inference::text {

namespace {

using rank = std::int64_t;
using merge_pair = std::pair<std::string, std::string>;
using rank_by_token = std::unordered_map<std::string_view, rank>;

/// Where a token's characters begin, and where it ends.
std::vector<std::size_t> cuts_of(std::string_view token) {
  std::vector<std::size_t> cuts;
  for (std::size_t at = 0; at < token.size(); at += base::utf8::decode(token.substr(at)).size) cuts.push_back(at);
  cuts.push_back(token.size());
  return cuts;
}

/// The two parts that the merge for `token` joins; none if more than two are left.
std::optional<merge_pair> last_merge(std::string_view token, rank own, const rank_by_token& ranks) {
  auto cuts = cuts_of(token);
  while (cuts.size() > 3) {
    auto best = std::numeric_limits<rank>::max();
    std::size_t joint = 0; // the cut between the two parts to be joined next
    for (std::size_t i = 1; i + 1 < cuts.size(); ++i) {
      const auto found = ranks.find(token.substr(cuts[i - 1], cuts[i + 1] - cuts[i - 1]));
      if (found == ranks.end() || found->second >= own || found->second >= best) continue;
      best = found->second;
      joint = i;
    }
    if (joint == 0) return std::nullopt;
    cuts.erase(cuts.begin() + static_cast<std::ptrdiff_t>(joint));
  }
  if (cuts.size() != 3) return std::nullopt;
  merge_pair result(token.substr(0, cuts[1]), token.substr(cuts[1]));
  return ranks.contains(result.first) && ranks.contains(result.second) ? std::optional(result) : std::nullopt;
}

} // namespace

std::size_t add_missing_merges(tokenizer_files& files) {
  rank_by_token ranks;
  ranks.reserve(files.vocabulary.size());
  for (const auto& [token, id] : files.vocabulary) ranks.emplace(token, id);

  std::vector<std::pair<rank, merge_pair>> all;
  all.reserve(files.vocabulary.size());
  std::unordered_set<rank> needs_none;
  auto previous = std::numeric_limits<rank>::min();
  for (const auto& merge : files.merges) {
    const auto found = ranks.find(merge.first + merge.second);
    if (found == ranks.end() || found->second <= previous) return 0;
    previous = found->second;
    needs_none.insert(found->second);
    all.emplace_back(found->second, merge);
  }
  for (const auto& token : files.added) needs_none.insert(token.id);
  for (const auto& [token, id] : files.vocabulary) {
    if (needs_none.contains(id)) continue;
    if (auto merge = last_merge(token, id, ranks)) all.emplace_back(id, std::move(*merge));
  }
  const auto added = all.size() - files.merges.size();
  if (added == 0) return 0;
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  files.merges.clear();
  for (auto& [id, merge] : all) files.merges.push_back(std::move(merge));
  return added;
}

} // namespace parley::inference::text
