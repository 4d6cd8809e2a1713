#pragma once

#include "inference/audio/encoder_pool.hpp"
#include "inference/formats/checkpoint.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/kernels/device_graph.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference::audio {

/// One chunk of one session's stream.
struct stream_chunk {
  encoder_cache* cache; ///< distinct within a call
  at::Tensor mel;       ///< float32 [frames, bins] on the CPU, as `mel_extractor::stream` emits it
  int drop_front = 1;   ///< convolved frames that are only context: 0 in a session's first unit, later 1
  int drop_back = 1;
};

/// One piece of a clip. `mel` may be longer than `frames`: then it was padded to match longer pieces of the same
/// reference call, and up to `frames` further convolved frames of the padding take part in the attention, as in the
/// reference (3.5).
struct clip_piece {
  at::Tensor mel;      ///< float32 [padded frames, bins]
  std::int64_t frames; ///< valid frames, at least 1
};

/// Intermediate values for golden cases; the rows of all pieces of a call follow each other.
struct encoder_trace {
  at::Tensor after_conv;           ///< [rows, hidden], before positions are added
  std::vector<at::Tensor> hiddens; ///< input of each layer, then the normed output: [rows, hidden]
};

/// Whisper-style encoder for many sessions at once: linear layers over the rows of all sessions, attention of each
/// session over its own cache. A session's result does not depend on the others beyond rounding. Its caches are used by
/// one thread at a time.
class encoder {
public:
  /// `w` is the view of "apm."; it determines dtype and device. Throws std::runtime_error when the weights do not fit
  /// `config`.
  encoder(const audio_config& config, const weights& w);

  encoder_cache make_cache() const;

  /// On a device, makes room for so many caches at once; else their memory grows, which copies it.
  void reserve_caches(std::int64_t caches) const;

  /// Streaming (3.4): extends the caches, first emptying any that would reach max_positions. [frames, hidden] per
  /// chunk, in the encoder's dtype. Throws std::runtime_error when a chunk is shorter than its context; then no cache
  /// grows.
  std::vector<at::Tensor> stream(std::span<const stream_chunk> chunks, encoder_trace* trace = nullptr) const;

  /// Offline (3.5), with attention in blocks of `chunk_seconds` (<= 0: no blocks): [(padded frames - 1) / 2 + 1,
  /// hidden] per piece, in the encoder's dtype. Throws std::runtime_error for a piece with more frames than there are
  /// positions.
  std::vector<at::Tensor> offline(std::span<const clip_piece> pieces, double chunk_seconds,
                                  encoder_trace* trace = nullptr) const;

  /// The same with the checkpoint's own block length.
  std::vector<at::Tensor> offline(std::span<const clip_piece> pieces) const;

  /// One piece on its way through the layers: the same work as `offline`, but one layer at a time.
  struct clip_pass {
    at::Tensor x, mask;
    std::size_t layers = 0; ///< finished layers
  };
  clip_pass begin_clip(const clip_piece& piece) const;

  /// Returns true after the last layer: `x` is then what `offline` returns.
  bool next_layer(clip_pass& pass) const;

private:
  struct layer {
    at::Tensor norm1_weight, norm1_bias, qkv_weight, qkv_bias, out_weight, out_bias;
    at::Tensor norm2_weight, norm2_bias, fc1_weight, fc1_bias, fc2_weight, fc2_bias;
  };
  /// (layer, queries, keys and values of all rows [rows, 3, heads, head_dim]) → [rows, hidden].
  using attention = std::function<at::Tensor(std::size_t, const at::Tensor&)>;
  /// The same for one sequence: (layer, sequence, query, key, value), all [heads, rows, head_dim].
  using sequence_attention =
      std::function<at::Tensor(std::size_t, std::size_t, const at::Tensor&, const at::Tensor&, const at::Tensor&)>;
  /// What is kept of a chunk's convolved frames.
  struct kept_frames {
    std::int64_t first, count;
  };

  std::vector<at::Tensor> stream_on_cpu(std::span<const stream_chunk> chunks, std::span<const kept_frames> kept,
                                        encoder_trace* trace) const;
  std::vector<at::Tensor> stream_on_device(std::span<const stream_chunk> chunks, std::span<const kept_frames> kept,
                                           encoder_trace* trace) const;
  struct device_call;
  std::optional<std::int64_t> padding_of(std::span<const stream_chunk> chunks, std::span<const kept_frames> kept) const;
  at::Tensor run_on_device(device_call& call, const packed_upload& sent, encoder_trace* trace) const;
  std::vector<at::Tensor> convolve(const std::vector<at::Tensor>& mels) const;
  at::Tensor positions(std::int64_t begin, std::int64_t count) const;
  std::vector<at::Tensor> run_layers(const std::vector<at::Tensor>& rows, const std::vector<at::Tensor>& positions,
                                     const sequence_attention& attend, encoder_trace* trace) const;
  at::Tensor run_layers(at::Tensor x, const attention& attend, encoder_trace* trace) const;
  at::Tensor run_layer(std::size_t number, const at::Tensor& x, const attention& attend) const;

  audio_config config_;
  at::Tensor conv1_weight_, conv1_bias_, conv2_weight_, conv2_bias_, positions_, norm_weight_, norm_bias_;
  std::vector<layer> layers_;

  // On a device:
  at::Tensor conv1_by_frame_, conv2_by_frame_, zero_row_; ///< weights with the frame before the channel
  std::shared_ptr<encoder_pool> pool_;
  mutable graph_cache graphs_{40};
};

} // namespace parley::inference::audio
