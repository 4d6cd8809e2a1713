#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/kernels/varlen_attention.hpp"
#include "inference/speech/layers.hpp"
#include "inference/vocoder/kv_history.hpp"
#include "inference/vocoder/row_contexts.hpp"
#include "inference/vocoder/row_history.hpp"
#include "inference/vocoder/row_pool.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// The flow's velocity estimator: a diffusion transformer with causal convolutions and a cache of earlier chunks
/// (docs/model/talker.md 7.3). What it is given and what it returns is in the dtype of its weights. Every sequence runs twice at once: row 0 with its
/// condition, row 1 without (guidance).
class dit {
public:
  /// On the CPU, one stream's memory for one solver step. Tensors are replaced, never written to, so that copies may share
  /// them.
  struct cache {
    std::vector<kv_history> attention; ///< for each block, the newest rows first: [2, heads, rows, k | v]
    std::vector<at::Tensor> conv;      ///< for each block [2, kernel - 1, 2 * width], the last inputs of both
                                       ///< convolutions

    std::int64_t rows() const { return attention.empty() ? 0 : attention[0].rows(); }
  };

  /// Elsewhere: what all streams remember, for all solver steps.
  struct memory {
    row_pool keys_values; ///< a tensor for each step: [blocks, rows, 2, heads, k | v]
    row_contexts inputs;  ///< [steps * blocks * 2, rows, 2 * width]: the last inputs of both convolutions
  };

  /// One stream's part of it.
  struct remembered {
    row_history keys_values; ///< the newest rows first
    row_contexts::state inputs;
  };

  /// Shifts, factors (scales plus one) and gates at one time t, the same for every sequence: [B, 1, width] each, B is 1 or
  /// 2.
  struct modulation {
    std::vector<std::vector<at::Tensor>> blocks; ///< nine of each block: attention, feed-forward, convolution
    std::vector<at::Tensor> last;                ///< two
  };

  struct job {
    cache* stream;
    std::int64_t rows; ///< rows of this sequence
  };

  /// Where one call's sequences have their rows: the same for all blocks and solver steps. On the CPU.
  class places {
  public:
    /// Adds to `numbers` what the networks must know.
    places(std::span<const job> sequences, packed_upload& numbers);

    /// Reads it back once it has been sent.
    void use(const packed_upload& sent);

  private:
    friend class dit;
    std::vector<std::int64_t> lengths_;
    packed_upload::part window_part_, end_part_;
    at::Tensor windows_; ///< the rows of every window
    at::Tensor ends_;    ///< the last rows of every sequence
  };

  /// A sequence elsewhere.
  struct shared_job {
    remembered* stream;
    std::int64_t rows;
  };

  /// Sequences that stand for nothing, so that calls have few shapes: rows of them all, at least one each, and the first of
  /// so many rows of the memory's parts that they may write to.
  struct padding {
    std::int64_t sequences = 0, rows = 0;
    std::int64_t first_row = 0;           ///< `rows` of them
    std::int64_t first_input = 0;         ///< as many as a convolution looks back to
    varlen_attention::bounds attention{}; ///< of the whole call, if it shall have a shape; {0, 0} = it need not
  };

  /// The same for one call elsewhere, including where the memory is read and written. What `use` reads has as many numbers
  /// in every call of equally many sequences and rows.
  class shared_places {
  public:
    /// Makes room in `memory`; the streams count their new rows from now on. Throws c10::Error if the device has no memory
    /// left.
    shared_places(std::span<const shared_job> sequences, const memory& memory, packed_upload& numbers,
                  const padding& more = {0, 0, 0, 0, {}});

    /// Moves rows that have to move, before anything else of the call.
    void move() const;

    /// Reads the numbers back once they have been sent.
    void use(const packed_upload& sent);

  private:
    friend class dit;
    row_writes keys_values_;
    row_contexts::exchange inputs_;
    varlen_attention attention_;
    packed_upload::part window_part_, end_part_, attention_part_;
    at::Tensor windows_, ends_;
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

  /// One solver step elsewhere than on the CPU, of all sequences of `at`. Asks for nothing but kernels, the same whatever
  /// the number of sequences.
  at::Tensor run(const at::Tensor& inputs, const modulation& at_time, std::size_t step, const memory& memory,
                 const shared_places& at) const;

  /// `spare`: rows that a stream takes beside those that it begins with. Throws std::runtime_error if the blocks differ in
  /// size.
  memory make_memory(int steps, std::int64_t spare) const;

  /// On the CPU, computes the large products in bfloat16 from now on (see `linear::use_bfloat16`). Elsewhere everything
  /// between its first and its last product, with fused attention, and memories and modulations made from now on are in
  /// bfloat16, too.
  void use_bfloat16();

  /// The dtype of its blocks and of their memory.
  at::ScalarType dtype() const { return dtype_; }

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
    void convert(at::ScalarType dtype);
    std::int64_t head_dim() const { return query_norm.weight.size(0); }
    std::int64_t heads() const { return query_key_value.weight.size(0) / (3 * head_dim()); }

    at::Tensor attend(const at::Tensor& x, const places& at, std::span<const job> jobs, std::size_t index) const;
    at::Tensor convolve(const at::Tensor& x, const places& at, std::span<const job> jobs, std::size_t index) const;
    at::Tensor feed(const at::Tensor& x) const;

    // Elsewhere (dit_together.cpp): `keys_values`, `inputs` are this block's parts of the memory.
    at::Tensor attend(const at::Tensor& x, const shared_places& at, const at::Tensor& keys_values) const;
    at::Tensor convolve(const at::Tensor& x, const std::vector<at::Tensor>& m, const shared_places& at,
                        const at::Tensor& inputs) const;
  };

  linear time_first_, time_second_;
  linear in_;
  at::ScalarType dtype_;
  std::vector<block> blocks_;
  linear out_modulate_, out_;
};

} // namespace parley::inference::speech
