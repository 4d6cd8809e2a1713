#include "inference/llm/ragged_attention.hpp"

#include "base/assert.hpp"
#include "inference/kernels/device_graph.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
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

namespace {

/// A sequence's keys in two runs, the second of which holds its new row.
struct two_runs {
  pool_run earlier, own;
};

/// A sequence with one run has it divided where the run of another one that begins alike ends, or behind its first key.
std::vector<two_runs> in_two(std::span<const sequence_rows> sequences) {
  std::map<std::int64_t, std::int64_t> fronts; // first row → rows
  std::vector<std::vector<pool_run>> runs;
  for (const auto& s : sequences) {
    runs.push_back(s.cache->runs(s.rows));
    if (runs.back().size() == 2) fronts.emplace(runs.back()[0].first, runs.back()[0].rows);
  }
  std::vector<two_runs> all;
  for (const auto& each : runs) {
    if (each.size() == 2) {
      all.push_back({each[0], each[1]});
      continue;
    }
    PARLEY_ASSERT(each.size() == 1 && each[0].rows > 1, "keys that make two runs");
    const auto front = fronts.find(each[0].first);
    const auto rows = front != fronts.end() && front->second < each[0].rows ? front->second : 1;
    all.push_back({{each[0].first, rows}, {each[0].first + rows, each[0].rows - rows}});
  }
  return all;
}

/// `own_runs` of one row of each, then of padding, each row of which sees itself.
std::vector<attention_run> padded_runs(std::span<const sequence_rows> sequences,
                                       const ragged_attention::shape& padded) {
  std::vector<attention_run> all;
  if (padded.shares)
    for (const auto& [earlier, own] : in_two(sequences)) all.push_back({1, own.first, own.rows});
  else
    for (const auto& run : own_runs(sequences)) all.push_back(run);
  const auto spare = sequences.front().cache->spare_row();
  for (auto i = std::int64_t{0}; std::ssize(all) < padded.rows; ++i) all.push_back({1, spare + i, 1});
  return all;
}

/// What one row of each attends to before.
std::vector<later_rows> earlier_rows(std::span<const sequence_rows> sequences) {
  std::vector<later_rows> all;
  for (const auto& [earlier, own] : in_two(sequences))
    all.push_back({{1, earlier.first, earlier.rows}, std::ssize(all)});
  return all;
}

} // namespace

ragged_attention::ragged_attention(std::span<const sequence_rows> sequences, packed_upload& numbers)
    : own_(own_runs(sequences), mask::causal), own_numbers_(numbers.add(own_.numbers())) {
  std::size_t most_runs = 0;
  for (const auto& s : sequences) most_runs = std::max(most_runs, s.cache->runs(s.rows).size());
  for (std::size_t rank = 0; rank + 1 < most_runs; ++rank) add_earlier(sequences, rank, numbers);
}

namespace {

/// Runs that several rows attend to, and whose rows they are.
struct grouped {
  std::vector<attention_run> runs;
  std::vector<std::int64_t> index; ///< of the call's rows
};

grouped group(std::vector<later_rows> rows) {
  auto place = [](const later_rows& r) { return std::tuple(r.attends.first_key, r.attends.keys); };
  std::ranges::stable_sort(rows, {}, place);
  grouped made;
  for (const auto& r : rows) {
    if (!made.runs.empty() && std::tuple(made.runs.back().first_key, made.runs.back().keys) == place(r))
      made.runs.back().queries += r.attends.queries;
    else
      made.runs.push_back(r.attends);
    for (auto i = std::int64_t{0}; i < r.attends.queries; ++i) made.index.push_back(r.first + i);
  }
  return made;
}

} // namespace

void ragged_attention::add_earlier(std::span<const sequence_rows> sequences, std::size_t rank, packed_upload& numbers) {
  const auto [runs, index] = group(rows_after(sequences, rank));
  const auto in_order = std::ssize(index) == own_.queries() && std::ranges::is_sorted(index);
  varlen_attention attention(runs, mask::none);
  const auto part = numbers.add(attention.numbers());
  const auto row_numbers = in_order ? packed_upload::part{} : numbers.add(index);
  earlier_.push_back({std::move(attention), part, row_numbers, in_order, {}});
}

std::optional<ragged_attention::shape> ragged_attention::shape_of(std::span<const sequence_rows> sequences) {
  constexpr std::int64_t shortest = 1024; // a power of two, like the bounds that follow
  shape found{padded_count(std::ssize(sequences)), false, true, 0, shortest};
  const auto padding = found.rows - std::ssize(sequences);
  std::int64_t fewest = shortest;
  for (const auto& s : sequences) {
    const auto runs = s.cache->runs(s.rows);
    if (s.rows != 1 || runs.size() > 2) return std::nullopt;
    if (runs.size() == 2)
      found.shares = true;
    else
      fewest = std::min(fewest, runs[0].rows);
    for (const auto& run : runs)
      while (found.keys < run.rows) found.keys *= 2;
  }
  if (!found.shares) return found;
  if (fewest < 2) return std::nullopt;
  const auto earlier = group(earlier_rows(sequences));
  found.in_order = std::ranges::is_sorted(earlier.index);
  found.earlier_runs = padded_count(std::ssize(earlier.runs) + (padding > 0 ? 1 : 0));
  if (found.earlier_runs > found.rows) return std::nullopt;
  return found;
}

ragged_attention::ragged_attention(std::span<const sequence_rows> sequences, const shape& padded,
                                   packed_upload& numbers)
    : own_(padded_runs(sequences, padded), mask::causal, {1, padded.keys}), own_numbers_(numbers.add(own_.numbers())) {
  if (padded.shares) add_earlier(sequences, padded, numbers);
}

void ragged_attention::add_earlier(std::span<const sequence_rows> sequences, const shape& padded,
                                   packed_upload& numbers) {
  auto [runs, index] = group(earlier_rows(sequences));
  if (const auto padding = padded.rows - std::ssize(sequences); padding > 0) {
    runs.push_back({padding, sequences.front().cache->spare_row(), 1});
    for (auto row = std::ssize(sequences); row < padded.rows; ++row) index.push_back(row);
  }
  // Divided, they stay the same.
  for (std::size_t i = 0; std::ssize(runs) < padded.earlier_runs;) {
    if (runs[i].queries == 1) {
      ++i;
      continue;
    }
    --runs[i].queries;
    runs.insert(runs.begin() + static_cast<std::ptrdiff_t>(i), {1, runs[i].first_key, runs[i].keys});
    ++i;
  }
  varlen_attention attention(runs, mask::none, {padded.rows, padded.keys});
  const auto part = numbers.add(attention.numbers());
  const auto row_numbers = padded.in_order ? packed_upload::part{} : numbers.add(index);
  earlier_.push_back({std::move(attention), part, row_numbers, padded.in_order, {}});
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
