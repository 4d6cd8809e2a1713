#include "inference/llm/ragged_attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace parley::inference::llm {

namespace {

using mask = varlen_attention::mask;

/// Each row's attention to the run that holds it, up to itself. Rows in two runs make two of these.
std::vector<attention_run> own_runs(std::span<const sequence_rows> sequences) {
  std::vector<attention_run> all;
  for (const auto& s : sequences) {
    const auto length = s.cache->length();
    for (auto begin = std::int64_t{0}; const auto& run : s.cache->runs(s.rows)) {
      const auto end = begin + run.rows;
      if (end > length) all.push_back({end - std::max(length, begin), run.first, run.rows});
      begin = end;
    }
  }
  return all;
}

/// Rows of the call whose run comes after their sequence's run number `rank`, which they attend to.
struct later_rows {
  attention_run attends;
  std::int64_t first; ///< of the call
};

std::vector<later_rows> rows_after(std::span<const sequence_rows> sequences, std::size_t rank) {
  std::vector<later_rows> all;
  for (auto first = std::int64_t{0}; const auto& s : sequences) {
    const auto runs = s.cache->runs(s.rows);
    if (rank + 1 < runs.size()) {
      const auto before = [](std::int64_t sum, const pool_run& run) { return sum + run.rows; };
      const auto end =
          std::accumulate(runs.begin(), runs.begin() + static_cast<std::ptrdiff_t>(rank) + 1, std::int64_t{0}, before);
      const auto skipped = std::max(end - s.cache->length(), std::int64_t{0});
      all.push_back({{s.rows - skipped, runs[rank].first, runs[rank].rows}, first + skipped});
    }
    first += s.rows;
  }
  return all;
}

} // namespace

ragged_attention::ragged_attention(std::span<const sequence_rows> sequences, packed_upload& numbers)
    : own_(own_runs(sequences), mask::causal), own_numbers_(numbers.add(own_.numbers())) {
  std::size_t most_runs = 0;
  for (const auto& s : sequences) most_runs = std::max(most_runs, s.cache->runs(s.rows).size());
  for (std::size_t rank = 0; rank + 1 < most_runs; ++rank) add_earlier(sequences, rank, numbers);
}

void ragged_attention::add_earlier(std::span<const sequence_rows> sequences, std::size_t rank, packed_upload& numbers) {
  auto rows = rows_after(sequences, rank);
  auto place = [](const later_rows& r) { return std::tuple(r.attends.first_key, r.attends.keys); };
  std::ranges::stable_sort(rows, {}, place);
  std::vector<attention_run> runs;
  std::vector<std::int64_t> index;
  for (const auto& r : rows) {
    if (!runs.empty() && std::tuple(runs.back().first_key, runs.back().keys) == place(r))
      runs.back().queries += r.attends.queries;
    else
      runs.push_back(r.attends);
    for (auto i = std::int64_t{0}; i < r.attends.queries; ++i) index.push_back(r.first + i);
  }
  const auto in_order = std::ssize(index) == own_.queries() && std::ranges::is_sorted(index);
  varlen_attention attention(runs, mask::none);
  const auto part = numbers.add(attention.numbers());
  const auto row_numbers = in_order ? packed_upload::part{} : numbers.add(index);
  earlier_.push_back({std::move(attention), part, row_numbers, in_order, {}});
}

void ragged_attention::use(const packed_upload& numbers) {
  own_.use(numbers[own_numbers_]);
  for (auto& e : earlier_) {
    e.attention.use(numbers[e.numbers]);
    if (!e.all_rows) e.index = numbers[e.row_numbers];
  }
}

at::Tensor ragged_attention::run(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values) const {
  if (earlier_.empty()) return own_.run(query, keys, values);
  partial all;
  all.mean = own_.run(query, keys, values, &all.weight);
  for (const auto& e : earlier_) {
    partial found;
    found.mean = e.attention.run(e.all_rows ? query : query.index_select(0, e.index), keys, values, &found.weight);
    include(all, e, found, &e == &earlier_.back());
  }
  return all.mean;
}

void ragged_attention::include(partial& so_far, const earlier_run& next, const partial& found, bool last) {
  const auto some = [&](const at::Tensor& x) { return next.all_rows ? x : x.index_select(0, next.index); };
  const auto replace = [&](at::Tensor& x, const at::Tensor& by) {
    if (next.all_rows)
      x = by;
    else
      x.index_copy_(0, next.index, by);
  };
  const auto mean = some(so_far.mean), weight = some(so_far.weight);
  // e^a / (e^a + e^b) for the two sums of exponentials.
  const auto share = at::sigmoid(found.weight - weight).unsqueeze(-1).to(mean.scalar_type());
  replace(so_far.mean, at::lerp(mean, found.mean, share));
  if (!last) replace(so_far.weight, at::logaddexp(weight, found.weight));
}

} // namespace parley::inference::llm
