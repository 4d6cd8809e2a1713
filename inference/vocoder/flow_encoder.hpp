#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/speech/layers.hpp"
#include "inference/vocoder/kv_history.hpp"
#include "inference/vocoder/row_contexts.hpp"
#include "inference/vocoder/row_history.hpp"
#include "inference/vocoder/row_pool.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Turns embeddings of speech tokens into hidden states at mel rate, chunk by chunk: conformer layers with relative
/// positions at 25 Hz, upsampling by two, more layers at 50 Hz (docs/model/talker.md 7.2). Looks three tokens ahead.
/// Works in the dtype of its weights.
class flow_encoder {
public:
  /// On the CPU, one stream's memory. Tensors are replaced, never written to, so that copies of a cache may share them.
  struct cache {
    at::Tensor lookahead; ///< [1, width, 2] last columns of the first look-ahead convolution
    at::Tensor upsampled; ///< [1, width, 4] last columns before the upsampling convolution
    std::vector<kv_history>
        attention; ///< for each layer, token layers first, the oldest rows first: [heads, rows, k | v]
  };

  /// Elsewhere: what all streams remember.
  struct memory {
    row_pool token_rows, mel_rows; ///< [layers, rows, heads, k | v]
    row_contexts looked, raised; ///< [1, rows, width]: last inputs of the second look-ahead convolution and upsampling
  };

  /// One stream's part of it.
  struct remembered {
    row_history token_rows, mel_rows; ///< the oldest rows first
    row_contexts::state looked, raised;
  };

  struct job {
    cache* stream;      ///< on the CPU
    remembered* shared; ///< elsewhere
    std::int64_t tokens;
    bool last = false; ///< otherwise the last three tokens are lookahead only

    /// Rows at token rate that this call adds; twice as many at mel rate.
    std::int64_t rows() const { return last ? tokens : tokens - lookahead_rows; }
  };

  /// How many rows a chunk looks ahead.
  static constexpr std::int64_t lookahead_rows = 3;

  /// Where one call's sequences have their rows.
  class places;

  /// `weights`: those below "encoder.".
  explicit flow_encoder(const tensor_map& weights);

  /// One batched call. embeddings [tokens of all jobs, width], one job after another; `at`: made from these jobs. Returns
  /// [rows of all jobs at mel rate, width].
  at::Tensor run(std::span<const job> jobs, const at::Tensor& embeddings, const places& at) const;

  /// Computes the large products in bfloat16 from now on (see `linear::use_bfloat16`).
  void use_bfloat16();

  /// `spare`: rows at mel rate that a stream takes beside those that it begins with. Throws std::runtime_error if layers
  /// differ in size.
  memory make_memory(std::int64_t spare) const;

  std::int64_t width() const { return width_; }
  std::size_t token_layers() const { return token_layers_.size(); }
  std::size_t layers() const { return token_layers_.size() + mel_layers_.size(); }

private:
  struct padded_rows;

  struct embedding {
    linear project;
    layer_norm norm;
    at::Tensor operator()(const at::Tensor& x) const;
  };

  struct layer {
    layer_norm attention_norm, feed_norm;
    linear query, key, value, out, position;
    linear widen, narrow;
    at::Tensor content_bias, position_bias; ///< [heads, head_dim]
    at::Tensor table; ///< projected positions [heads, 2 * reach - 1, head_dim], from reach - 1 down

    layer(const tensor_map& weights, const std::string& name);
    at::Tensor positions(std::int64_t total, std::int64_t fresh) const;
    at::Tensor project_positions(std::int64_t highest, std::int64_t rows) const;
    at::Tensor attend(const at::Tensor& q, const at::Tensor& kv) const;
    at::Tensor attend_each(const at::Tensor& q, const at::Tensor& kv, std::span<const std::int64_t> lengths,
                           std::span<const job> jobs, std::size_t index) const;
    at::Tensor attend_together(const at::Tensor& q, const at::Tensor& kv, const places& at, bool mel_rate,
                               std::size_t index) const;
    at::Tensor run(at::Tensor x, const places& at, bool mel_rate, std::span<const job> jobs, std::size_t index) const;
  };

  at::Tensor look_ahead_each(const at::Tensor& x, const places& at, std::span<const job> jobs) const;
  at::Tensor look_ahead_together(const at::Tensor& x, const places& at) const;
  at::Tensor upsample_each(const at::Tensor& x, const places& at, std::span<const job> jobs) const;
  at::Tensor upsample_together(const at::Tensor& x, const places& at) const;

  std::int64_t width_;
  embedding embed_, embed_upsampled_;
  padded_conv lookahead_first_, lookahead_second_, up_conv_;
  window_conv lookahead_first_windows_, lookahead_second_windows_, up_windows_; ///< the same; elsewhere than on the CPU
  std::vector<layer> token_layers_, mel_layers_;
  layer_norm after_norm_;
};

} // namespace parley::inference::speech
