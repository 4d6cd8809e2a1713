#pragma once

#include "inference/llm/sampling.hpp"

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace parley::inference::llm {

/// Finds on a device what a draw needs of each row of logits, so that 2 KB of a row are downloaded and not 600. One
/// download, and the same kernels whatever the number of rows.
class shortlist {
public:
  /// How many of the largest logits a row keeps: more than any usual top-k, for tokens that are banned and for equals.
  static constexpr std::int64_t length = 256;

  /// `named`: the ids whose logits every row has. Uploads them.
  shortlist(token_id chunk_eos, std::vector<token_id> named, at::Device device);

  /// `logits`: float32 [n, vocabulary] on the device.
  std::vector<short_row> of(const at::Tensor& logits) const;

private:
  token_id chunk_eos_;
  std::vector<token_id> named_; ///< ascending, each once
  at::Tensor named_there_;
};

} // namespace parley::inference::llm
