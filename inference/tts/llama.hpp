#pragma once

#include "inference/kernels/device_graph.hpp"
#include "inference/speech/layers.hpp"
#include "inference/speech/speech_config.hpp"
#include "inference/tts/device_draw.hpp"
#include "inference/tts/embeddings.hpp"
#include "inference/tts/tts_rows.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley::inference::speech {

/// Keys and values of one session's turn. Grows by doubling; dropping rows at the front costs nothing until it grows.
/// Rows are written once: a copy shares them and is not affected when the original grows.
class tts_cache {
public:
  std::int64_t length() const { return length_; }

  /// [kv_heads, length, head_dim] of a layer, with rotated keys; views, valid until the next change.
  at::Tensor keys(std::size_t layer) const;
  at::Tensor values(std::size_t layer) const;

  void clear() { *this = {}; }

  /// Drops all but the last `rows`.
  void keep_last(std::int64_t rows);

  /// Drops the last `rows`.
  void drop_last(std::int64_t rows) { length_ -= rows; }

  /// Replaces whole layers, [kv_heads, rows, head_dim] each.
  void assign(std::vector<at::Tensor> keys, std::vector<at::Tensor> values);

private:
  friend class tts_llama;
  void extend(std::size_t layers, std::int64_t more, const at::Tensor& like);
  std::int64_t wanted_for(std::int64_t more) const;
  bool has_room(std::int64_t more) const;

  std::vector<at::Tensor> keys_, values_;       ///< [kv_heads, capacity, head_dim]; on the CPU
  std::shared_ptr<const tts_rows::range> rows_; ///< of both; elsewhere
  std::int64_t begin_ = 0, length_ = 0;
};

/// The TTS language model: a stock llama over given embeddings (docs/model/talker.md 4), in float32 unless said otherwise.
/// One object serves
/// all sessions. Not thread-safe.
class tts_llama {
public:
  /// One session's part of a call: some rows of input.
  struct row {
    tts_cache* past;
    at::Tensor embeddings;            ///< [n, width], the first rows; undefined = none
    std::vector<std::int64_t> tokens; ///< speech tokens, whose rows follow
    const tts_embeddings* codes;      ///< what those rows are; the same for a whole call
    std::int64_t position;            ///< position of the first row, for its rotation

    std::int64_t rows() const { return (embeddings.defined() ? embeddings.size(0) : 0) + std::ssize(tokens); }
  };

  /// `weights`: see `read_tts_weights`. Throws std::runtime_error naming a tensor that is missing or does not fit
  /// `config`.
  tts_llama(const tensor_map& weights, const tts_config& config);

  /// Keeps the layers' matrices in 8 bits from now on, on the CPU.
  void use_int8();

  /// Elsewhere: the layers, and what turns remember, are in bfloat16 from now on. Before any turn begins.
  void use_bfloat16();

  /// One batched call: extends the caches and returns each session's last hidden state, after the final norm, [rows,
  /// width]. If it throws, the caches are unchanged.
  at::Tensor forward(std::span<const row> rows) const;

  /// The same, followed by each session's logits: float32 [codes] on the CPU.
  std::vector<at::Tensor> next_logits(std::span<const row> rows) const;

  /// Whether `choose` can be called: there are kernels for it, and one call asks for the same ones as any other.
  bool chooses() const;

  /// The next `steps` tokens of each session, with the host waiting once; -1 where the logits are not numbers. Each session
  /// is fed its row, and then the tokens chosen but for the last: also after one that ends.
  std::vector<std::vector<std::int64_t>> choose(std::span<const row> rows, std::span<const tts_choice> how,
                                                std::int64_t steps) const;

  /// [rows, width] -> [rows, codes]
  at::Tensor logits(const at::Tensor& hidden) const { return at::linear(hidden, head_); }

  /// Rotates keys [heads, n, head_dim] by the angles of `positions` [n] (int64).
  at::Tensor rotate(const at::Tensor& keys, const at::Tensor& positions) const;

  /// Bytes of a row of a turn's cache.
  std::size_t row_bytes() const;

  std::int64_t width() const { return final_norm_.size(0); }
  std::int64_t codes() const { return head_.size(0); }
  std::int64_t end_token() const { return codes() - 1; }
  const at::Tensor& head() const { return head_; }
  std::size_t layers() const { return layers_.size(); }
  const tts_config& config() const { return config_; }

private:
  struct layer {
    at::Tensor attention_norm, feed_norm;
    linear query_key_value, out, gate_up, down;
  };
  struct angles {
    at::Tensor cos, sin; ///< [n, head_dim]
  };
  struct padding;
  struct plan;

  layer read_layer(const tensor_map& weights, const std::string& name, std::int64_t width) const;
  template<class Call>
  static auto undone_if_it_throws(std::span<const row> rows, Call call);
  at::Tensor extend(std::span<const row> rows) const;
  at::Tensor extend_here(std::span<const row> rows) const;
  at::Tensor extend_on_cpu(at::Tensor x, std::span<const row> rows, const plan& at) const;
  at::Tensor extend_together(at::Tensor x, const plan& at) const;
  struct sorted_rows;
  sorted_rows sort(std::span<const row> rows) const;
  at::Tensor logits_of(const sorted_rows& of) const;
  std::vector<at::Tensor> logits_on_device(std::span<const row> rows) const;
  std::vector<std::vector<std::int64_t>> choose_on_device(std::span<const row> rows, std::span<const tts_choice> how,
                                                          std::int64_t steps) const;
  at::Tensor logits_by_graph(std::span<const row> rows, const at::Tensor& tokens = {}) const;
  void make_room(std::span<const row> rows, std::int64_t later = 0) const;
  angles angles_of(const at::Tensor& positions) const;
  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const;

  tts_config config_;
  std::int64_t head_dim_;
  std::vector<layer> layers_;
  at::Tensor final_norm_, head_, frequencies_;
  at::ScalarType dtype_ = at::kFloat; ///< of the layers and the caches
  // Elsewhere than on the CPU.
  std::optional<tts_rows> rows_;
  mutable std::shared_ptr<const tts_rows::range> spare_; ///< rows for what pads a call
  mutable graph_cache graphs_{64};
};

} // namespace parley::inference::speech
