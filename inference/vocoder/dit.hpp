#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/kernels/varlen_attention.hpp"
#include "inference/vocoder/kv_history.hpp"
#include "inference/vocoder/layers.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
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
    std::vector<kv_history> attention; ///< for each block, the newest rows first: [2, heads, rows, k | v] on the CPU,
                                       ///< [rows, 2, heads, k | v] elsewhere
    std::vector<at::Tensor> conv;      ///< for each block [2, kernel - 1, 2 * width], the last inputs of both
                                       ///< convolutions

    std::int64_t rows() const { return attention.empty() ? 0 : attention[0].rows(); }
  };

  /// Shifts, factors (scales plus one) and gates of all blocks at one time t, the same for every sequence.
  struct modulation {
    std::vector<at::Tensor> blocks; ///< [B, 9, width], B is 1 or 2
    at::Tensor last;                ///< [B, 2, width]
  };

  struct job {
    cache* stream;
    std::int64_t rows; ///< rows of this sequence
  };

  /// Where one call's sequences have their rows: the same for all blocks and solver steps.
  class places {
  public:
    /// Adds to `numbers` what the device must know.
    places(std::span<const job> sequences, at::Device device, packed_upload& numbers);

    /// Reads it back once it has been sent.
    void use(const packed_upload& sent);

  private:
    friend class dit;
    std::vector<std::int64_t> lengths_;
    packed_upload::part window_part_, end_part_, attention_part_;
    at::Tensor windows_;                        ///< the rows of every window
    at::Tensor ends_;                           ///< the last rows of every sequence
    std::optional<varlen_attention> attention_; ///< elsewhere than on the CPU
  };

  /// `weights`: those below "decoder.estimator.".
  explicit dit(const tensor_map& weights);

  /// t [B] in [0, 1] -> [B, width]
  at::Tensor embed_time(const at::Tensor& t) const;

  /// time_embedding [B, width]
  modulation modulate(const at::Tensor& time_embedding) const;

  /// inputs [2, N, 4 * bins]: x, mu, speaker and condition of all jobs' rows, one job after another. Returns velocities
  /// [2, N, bins] and extends the caches. `at`: made from these jobs, or from other caches with as many rows.
  at::Tensor run(const at::Tensor& inputs, const modulation& at_time, std::span<const job> jobs,
                 const places& at) const;
  at::Tensor run(const at::Tensor& inputs, const modulation& at_time, std::span<const job> jobs) const;

  /// Computes the large products in bfloat16 from now on (see `linear::use_bfloat16`).
  void use_bfloat16();

  std::int64_t bins() const { return out_.weight.size(0); }
  std::size_t depth() const { return blocks_.size(); }

private:
  /// Number of earlier rows that a convolution reads.
  static constexpr std::int64_t context_rows = 2;

  struct block {
    linear modulate;
    linear query_key_value;
    layer_norm query_norm, key_norm;
    linear attention_out;
    window_conv conv_first, conv_second;
    layer_norm conv_norm;
    linear widen, narrow;

    block(const tensor_map& weights, const std::string& name);
    at::Tensor attend(const at::Tensor& x, const places& at, std::span<const job> jobs, std::size_t index) const;
    at::Tensor attend_each(std::span<const at::Tensor> parts, const places& at, std::span<const job> jobs,
                           std::size_t index) const;
    at::Tensor attend_together(std::span<const at::Tensor> parts, const places& at, std::span<const job> jobs,
                               std::size_t index) const;
    at::Tensor convolve(const at::Tensor& x, const places& at, std::span<const job> jobs, std::size_t index) const;
  };

  linear time_first_, time_second_;
  linear in_;
  std::vector<block> blocks_;
  linear out_modulate_, out_;
};

} // namespace parley::inference::speech
