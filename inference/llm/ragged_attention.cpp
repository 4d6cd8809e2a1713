#include "inference/llm/ragged_attention.hpp"

#include "inference/llm/attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>

namespace parley::inference::llm {

ragged_attention::ragged_attention(std::span<const sequence_rows> sequences, const at::TensorOptions& options) {
  for (const auto& s : sequences) {
    const auto length = s.cache->length();
    // New rows in the first run are visible only to some of the rows, so the run can't be attended to as a whole.
    const auto front_rows = s.cache->front_rows() <= length ? s.cache->front_rows() : 0;
    const auto dtype = c10::typeMetaToScalarType(options.dtype());
    parts_.push_back(
        {s.cache, rows_, s.rows, front_rows, causal_mask(s.rows, length - front_rows, dtype, options.device())});
    if (front_rows > 0) {
      auto same = [&](const front& f) {
        return f.rows == front_rows && f.cache->front_page() == s.cache->front_page();
      };
      auto found = std::ranges::find_if(fronts_, same);
      if (found == fronts_.end()) found = fronts_.insert(found, {s.cache, front_rows, {}, {}});
      for (auto row = rows_; row < rows_ + s.rows; ++row) found->members.push_back(row);
    }
    rows_ += s.rows;
  }
  for (auto& f : fronts_)
    if (f.members.back() - f.members.front() + 1 != std::ssize(f.members))
      f.index = at::tensor(f.members, at::kLong).to(options.device());
}

void ragged_attention::run(int layer, const at::Tensor& query, const at::Tensor& into) const {
  const auto heads = query.size(1);
  at::Tensor weights; // logarithm of each row's sum of exponentials, if there are two runs
  if (!fronts_.empty()) weights = at::empty({rows_, heads}, query.options().dtype(at::kFloat));
  for (const auto& p : parts_) {
    const auto end = p.cache->length() + p.rows;
    const auto keys = p.cache->keys(layer, p.begin, end), values = p.cache->values(layer, p.begin, end);
    const auto q = query.narrow(0, p.first, p.rows);
    if (p.begin == 0) {
      into.narrow(0, p.first, p.rows).copy_(attend(q, keys, values, p.mask));
      continue;
    }
    const auto tail = attend_part(q, keys, values, p.mask);
    into.narrow(0, p.first, p.rows).copy_(tail.mean);
    weights.narrow(0, p.first, p.rows).copy_(tail.weight);
  }
  add_fronts(query, into, layer, weights);
}

void ragged_attention::add_fronts(const at::Tensor& query, const at::Tensor& into, int layer,
                                  const at::Tensor& weights) const {
  for (const auto& f : fronts_) {
    auto members = [&](const at::Tensor& x) {
      return f.index.defined() ? x.index_select(0, f.index) : x.narrow(0, f.members.front(), std::ssize(f.members));
    };
    const auto met =
        attend_part(members(query), f.cache->keys(layer, 0, f.rows), f.cache->values(layer, 0, f.rows), {});
    // e^a / (e^a + e^b) for the two sums of exponentials.
    const auto share = at::sigmoid(met.weight - members(weights)).unsqueeze(-1).to(into.scalar_type());
    const auto tail = members(into).view({std::ssize(f.members), query.size(1), query.size(2)});
    const auto both = at::lerp(tail, met.mean.view_as(tail), share).flatten(1);
    if (f.index.defined())
      into.index_copy_(0, f.index, both);
    else
      members(into).copy_(both);
  }
}

} // namespace parley::inference::llm
