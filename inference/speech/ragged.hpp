#pragma once

#include "inference/speech/layers.hpp"

#include <ATen/ATen.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

// Sequences of different lengths side by side: their rows in one matrix, and cutting it between them.
namespace parley::inference::speech {

/// Cuts `all` along `axis` into pieces of these lengths (views).
inline std::vector<at::Tensor> cut(const at::Tensor& all, std::span<const std::int64_t> lengths, std::int64_t axis) {
  return at::split_with_sizes(all, at::IntArrayRef(lengths.data(), lengths.size()), axis);
}

/// Joins the tensors at these places along their first axis. A single contiguous tensor is not copied.
inline at::Tensor batch_of(const std::vector<at::Tensor>& from, const std::vector<std::size_t>& rows) {
  if (rows.size() == 1) return from[rows.front()].contiguous();
  std::vector<at::Tensor> picked;
  picked.reserve(rows.size());
  for (auto row : rows) picked.push_back(from[row]);
  return at::cat(picked, 0);
}

/// Where causal convolutions over several sequences find their rows, if the last `context` rows that each sequence had
/// before are joined, and then the sequences' new rows.
class rows_after_context {
public:
  rows_after_context(std::int64_t context, std::span<const std::int64_t> lengths) : context_(context) {
    auto begin = context * std::ssize(lengths);
    for (const auto length : lengths) begins_.push_back(std::exchange(begin, begin + length));
    rows_ = begin;
  }

  /// The row at position n of a sequence, counted from the beginning of its context.
  std::int64_t operator()(std::size_t sequence, std::int64_t n) const {
    return n < context_ ? static_cast<std::int64_t>(sequence) * context_ + n : begins_[sequence] + n - context_;
  }

  std::int64_t rows() const { return rows_; }

private:
  std::int64_t context_, rows_;
  std::vector<std::int64_t> begins_;
};

/// Convolves sequences [B, in, T_i] in one call, without padding; returns [B, out, T_i - kernel + 1] for each. Columns
/// that straddle two sequences are computed and discarded.
inline std::vector<at::Tensor> convolve_each(const std::vector<at::Tensor>& sequences, const padded_conv& conv) {
  if (convolves_by_hand(sequences.front(), conv)) {
    std::vector<at::Tensor> each;
    each.reserve(sequences.size());
    for (const auto& sequence : sequences) each.push_back(convolve_by_hand(sequence, conv));
    return each;
  }
  const auto joined = conv.inside(sequences.size() == 1 ? sequences[0] : at::cat(sequences, 2));
  std::vector<at::Tensor> result;
  result.reserve(sequences.size());
  std::int64_t at = 0;
  for (const auto& sequence : sequences) {
    result.push_back(joined.narrow(2, at, sequence.size(2) - conv.kernel() + 1));
    at += sequence.size(2);
  }
  return result;
}

} // namespace parley::inference::speech
