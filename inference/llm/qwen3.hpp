#pragma once

#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/kernels/device_graph.hpp"
#include "inference/llm/kv_pool.hpp"
#include "inference/llm/linear.hpp"
#include "inference/llm/ragged_attention.hpp"
#include "inference/llm/rope.hpp"
#include "inference/text/tokenizer.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference::llm {

/// Intermediate values, for tests.
struct forward_trace {
  std::vector<at::Tensor> hiddens; ///< input of each layer, then the normed output: [rows, hidden]
};

/// The Qwen3 decoder (docs/model/thinker.md 4) for many sequences at once: linear layers over the rows of all of them,
/// attention of each sequence over its own cache, without padding. A sequence's result depends on the others only by
/// rounding. Not thread-safe.
class qwen3 {
public:
  /// `w` is the view of "llm."; it determines dtype and device. `format` applies to the matrices of the layers; on the
  /// CPU the head then has 8 bits, and with int4 the first and last layer too, unless AWQ stored them in 4. The embedding
  /// stays as it is, as few of its rows are read. Throws std::runtime_error naming a weight that is missing or does not fit
  /// `config`.
  qwen3(const llm_config& config, const weights& w, quantization format = quantization::none);

  /// int64 [n] → [n, hidden] in `dtype()`.
  at::Tensor embed(const at::Tensor& ids) const;
  at::Tensor embed(std::span<const token_id> ids) const;

  /// The rows of a call, one sequence after another: those of `ids`, then `embeddings` [n, hidden] in `dtype()`, if
  /// defined. Together the sum of the sequences' rows.
  struct input {
    std::span<const token_id> ids;
    at::Tensor embeddings;
  };

  /// Extends the caches; if it throws (std::runtime_error if their pool is empty), they are unchanged. Returns the normed
  /// hidden states of the rows numbered in `wanted`: [wanted, hidden] in `dtype()`. Everything that a device must know
  /// goes there in one copy.
  at::Tensor forward(const input& rows, std::span<const sequence_rows> sequences, std::span<const std::int64_t> wanted,
                     forward_trace* trace = nullptr) const;

  /// The same without ids.
  at::Tensor forward(const at::Tensor& embeddings, std::span<const sequence_rows> sequences,
                     std::span<const std::int64_t> wanted, forward_trace* trace = nullptr) const {
    return forward(input{{}, embeddings}, sequences, wanted, trace);
  }

  /// [n, hidden] in `dtype()` → float32 [n, vocabulary].
  at::Tensor logits(const at::Tensor& hidden) const;

  std::int64_t vocabulary() const { return vocabulary_; }

  /// Size of all weights, mapped or not.
  std::size_t weight_bytes() const;

  const rope& positions() const { return rope_; }
  const llm_config& config() const { return config_; }
  at::ScalarType dtype() const { return norm_.scalar_type(); }
  at::Device device() const { return norm_.device(); }

private:
  struct layer {
    at::Tensor input_norm, post_norm, query_norm, key_norm;
    at::Tensor turned_norm; ///< [heads + kv_heads, head_dim]: query_norm for each head, key_norm for each key head
    linear qkv, out, gate_up, down; ///< side by side: [q; k; v] and [gate; up]
  };

  /// The rows of a call, and where to write them.
  struct call {
    std::span<const sequence_rows> sequences;
    std::vector<std::int64_t> targets; ///< each row's row number in the pool
    rope::rotation turn;               ///< float32, on the CPU
  };

  /// The same where the layers run.
  struct device_call {
    kv_cache pool; ///< any cache of it
    ragged_attention attention;
    at::Tensor targets; ///< int64 [rows]
    rope::rotation turn;
  };

  at::Tensor embed(const at::Tensor& ids, const at::Tensor& embeddings) const;

  /// All layers: [rows, hidden] → the same, before the last norm. The first works on every device and dtype, the second
  /// on memory that the hand-written loops can access.
  at::Tensor run_layers(const at::Tensor& embeddings, const device_call& what, forward_trace* trace) const;
  template<class Number>
  at::Tensor run_layers_on_cpu(const at::Tensor& embeddings, const call& what, forward_trace* trace) const;
  at::Tensor query_key_norm(const layer& l, const at::Tensor& qkv) const;

  /// `forward` up to the last norm: the wanted rows of the last layer's output.
  at::Tensor forward_on_cpu(const input& rows, const call& what, std::span<const std::int64_t> wanted,
                            forward_trace* trace) const;
  at::Tensor forward_on_device(const input& rows, const call& what, std::span<const std::int64_t> wanted,
                               forward_trace* trace) const;
  at::Tensor forward_by_graph(const input& rows, const call& what, const ragged_attention::shape& padded,
                              std::span<const std::int64_t> wanted) const;

  llm_config config_;
  rope rope_;
  at::Tensor embedding_, norm_;
  std::optional<quantized_matrix> small_head_;
  std::int64_t vocabulary_;
  linear head_; ///< empty if it is quantized
  std::vector<layer> layers_;
  mutable graph_cache graphs_{64}; ///< elsewhere than on the CPU
};

} // namespace parley::inference::llm
