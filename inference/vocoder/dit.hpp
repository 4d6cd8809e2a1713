#pragma once

#include "inference/vocoder/kv_history.hpp"
#include "inference/vocoder/layers.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// The flow's velocity estimator: a diffusion transformer with causal convolutions and a cache of earlier chunks
/// (docs/model/talker.md 7.3), in the dtype of its weights. Every sequence runs twice at once: row 0 with its
/// condition, row 1 without (guidance).
class dit {
public:
  /// One stream's memory for one solver step. Tensors are replaced, never written to, so that copies may share them.
  struct cache {
    std::vector<kv_history> attention; ///< for each block, for both guidance rows
    std::vector<at::Tensor> conv;      ///< for each block [2, 2 * width, kernel - 1], the last inputs of both
                                       ///< convolutions

    std::int64_t rows() const { return attention.empty() ? 0 : attention[0].rows(); }
  };

  /// Shifts, scales and gates of all blocks at one time t, the same for every sequence.
  struct modulation {
    std::vector<at::Tensor> blocks; ///< [B, 9, width], B is 1 or 2
    at::Tensor last;                ///< [B, 2, width]
  };

  struct job {
    cache* stream;
    std::int64_t rows; ///< rows of this sequence
  };

  /// `weights`: those below "decoder.estimator.".
  explicit dit(const tensor_map& weights);

  /// t [B] in [0, 1] -> [B, width]
  at::Tensor embed_time(const at::Tensor& t) const;

  /// time_embedding [B, width]
  modulation modulate(const at::Tensor& time_embedding) const;

  /// inputs [2, N, 4 * bins]: x, mu, speaker and condition of all jobs' rows, one job after another. Returns velocities
  /// [2, N, bins] and extends the caches.
  at::Tensor run(const at::Tensor& inputs, const modulation& at_time, std::span<const job> jobs) const;

  std::int64_t bins() const { return out_.weight.size(0); }
  std::size_t depth() const { return blocks_.size(); }

private:
  /// Number of earlier rows that a convolution reads.
  static constexpr std::int64_t context_rows = 2;

  struct causal_conv {
    at::Tensor weight; ///< [out, taps * in]
    at::Tensor bias;
    causal_conv(const tensor_map& weights, const std::string& name);
  };

  /// The positions of the sequences of one call.
  struct places {
    std::span<const job> jobs;
    std::vector<std::int64_t> lengths;
    at::Tensor windows; ///< the rows of every window, with each sequence's context before it
    at::Tensor ends;    ///< the last rows of every sequence
    places(std::span<const job> sequences, at::Device device);
  };

  struct block {
    linear modulate;
    linear query_key_value;
    layer_norm query_norm, key_norm;
    linear attention_out;
    causal_conv conv_first, conv_second;
    layer_norm conv_norm;
    linear widen, narrow;

    block(const tensor_map& weights, const std::string& name);
    at::Tensor attend(const at::Tensor& x, const places& at, std::size_t index) const;
    at::Tensor convolve(const at::Tensor& x, const places& at, std::size_t index) const;
  };

  linear time_first_, time_second_;
  linear in_;
  std::vector<block> blocks_;
  linear out_modulate_, out_;
};

} // namespace parley::inference::speech
