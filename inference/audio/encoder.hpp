#pragma once

#include "inference/checkpoint.hpp"
#include "inference/model_config.hpp"

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace parley::inference::audio {

/// A session's encoder state: keys and values of every frame since the last reset (THINKER.md 3.4).
/// Made by `encoder::make_cache`, owned by the caller; an engine keeps them in a pool and `clear`s them between
/// sessions.
struct encoder_cache {
  at::Tensor keys;   ///< [layers, heads, max_positions, head_dim]
  at::Tensor values; ///< the same
  int length = 0;    ///< frames held; the next chunk begins at this position

  void clear() { length = 0; }
};

/// One chunk of one session's stream.
struct stream_chunk {
  encoder_cache* cache; ///< distinct within a call
  at::Tensor mel;       ///< [frames, bins] as `mel_extractor::stream` emits it
  int drop_front = 1; ///< convolved frames that are only context: 0 for a session's first chunk (chunk index 0), then 1
  int drop_back = 1;
};

/// One piece of a clip. `mel` may be longer than `frames`: then it was padded beside longer pieces of the same
/// reference call, and up to twice `frames` of what is padded takes part in the attention, as in the reference (3.5).
struct clip_piece {
  at::Tensor mel; ///< [padded frames, bins]
  int frames;     ///< valid ones
};

/// What the tests look at. Tensors of the rows one below the other.
struct encoder_trace {
  at::Tensor after_conv;           ///< [rows, hidden], before positions are added
  std::vector<at::Tensor> hiddens; ///< input of each layer, then the normed output: [rows, hidden]
};

/// Whisper-style encoder for many sessions at once: linear layers over the rows of all sessions, attention per session.
/// A session's result does not depend on the others beyond float32 rounding.
class encoder {
public:
  /// `w` is the view of "apm.".
  encoder(const audio_config& config, const weights& w);

  encoder_cache make_cache() const;

  /// Streaming (3.4): extends the caches, resets one that would reach max_positions, returns [frames, hidden] per
  /// chunk.
  std::vector<at::Tensor> stream(std::span<const stream_chunk> chunks, encoder_trace* trace = nullptr) const;

  /// Offline (3.5) with attention in blocks of config.chunk_seconds: [(padded frames - 1) / 2 + 1, hidden] per piece.
  /// Throws std::runtime_error when a piece is longer than max_positions.
  std::vector<at::Tensor> offline(std::span<const clip_piece> pieces, encoder_trace* trace = nullptr) const;
  std::vector<at::Tensor> offline(std::span<const clip_piece> pieces, double chunk_seconds,
                                  encoder_trace* trace = nullptr) const;

private:
  struct layer {
    at::Tensor norm1_weight, norm1_bias, norm2_weight, norm2_bias;
    at::Tensor qkv_weight, qkv_bias; ///< query rows scaled by head_dim^-0.5
    at::Tensor out_weight, out_bias, fc1_weight, fc1_bias, fc2_weight, fc2_bias;
  };
  struct span_of_rows;

  at::Tensor convolve(std::span<const at::Tensor> mels, std::vector<std::int64_t>& lengths) const;

  audio_config config_;
  at::Tensor conv1_weight_, conv1_bias_, conv2_weight_, conv2_bias_, positions_, norm_weight_, norm_bias_;
  std::vector<layer> layers_;
};

} // namespace parley::inference::audio
