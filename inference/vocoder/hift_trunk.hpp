#pragma once

#include "inference/kernels/vocoder.hpp"
#include "inference/speech/layers.hpp"
#include "inference/speech/speech_config.hpp"

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

namespace parley::inference::speech {

/// The direction in which a vocoder's convolutions look.
enum class reach { both_sides, past_only };

/// Residual block with snake activations x + sin(a x)^2 / a, one `a` per channel (docs/model/talker.md 8).
class snake_block {
public:
  /// Throws std::runtime_error if a tensor is missing or isn't of this many channels, or if there are no dilations.
  snake_block(const tensor_map& weights, const std::string& name, std::int64_t channels,
              const std::vector<std::int64_t>& dilations, reach looks);

  /// [B, channels, T] -> the same.
  at::Tensor operator()(at::Tensor x) const;

  /// Computes the convolutions in bfloat16 from now on (see `linear::use_bfloat16`).
  void use_bfloat16();

  /// How many columns to the left of a column affect it.
  std::int64_t history() const;

private:
  /// The same in plain memory: activation, convolution and residual, one channel's row at a time.
  at::Tensor run_on_cpu(const at::Tensor& x) const;

  struct unit {
    at::Tensor alpha, inverse; ///< [1, channels, 1]
    padded_conv conv;
  };
  std::vector<unit> units_; ///< two for each dilation
};

/// The common part of both HiFT vocoders (docs/model/talker.md 8): everything between `conv_pre` and the waveform, and
/// the mixing of the excitation. Stateless; tensors are float32.
class hift_trunk {
public:
  /// `weights` with weight norm folded in. Throws std::runtime_error if a tensor is missing or doesn't fit `config`.
  hift_trunk(const tensor_map& weights, hift_config config, reach looks);

  /// The short-time spectrum of the excitation [B, samples]: real parts above imaginary ones, [B, fft + 2, columns].
  at::Tensor source_spectrum(const at::Tensor& source) const;

  /// x: `conv_pre`'s output [B, channels, frames]; spectrum of the same frames. Returns samples [B, frames *
  /// frame_samples]. `columns`, elsewhere than on the CPU: int32 [B], how many columns of the spectrum each has; undefined
  /// = all.
  at::Tensor decode(at::Tensor x, const at::Tensor& spectrum, const at::Tensor& columns = {}) const;

  /// Mixes noise [rows, harmonics] for `excite` and `mix_source`: [rows].
  at::Tensor mix_noise(const at::Tensor& noise) const;

  /// The weights of that mixture, [harmonics].
  at::Tensor noise_mix() const { return source_mix_.weight.squeeze(0); }

  /// Sines [B, frames, harmonics] and f0 [B, frames], constant over each frame, mixed noise [B, frames, samples] →
  /// excitation [B, frames * samples].
  at::Tensor excite(const at::Tensor& sines, const at::Tensor& f0, const at::Tensor& mixed_noise) const;

  /// Sines [B, samples, harmonics], noise of the same sizes or mixed already [B, samples], f0 in Hz per sample [B, samples,
  /// 1] -> excitation [B, samples].
  at::Tensor mix_source(const at::Tensor& sines, const at::Tensor& noise, const at::Tensor& f0) const;

  /// Computes the convolutions in bfloat16 from now on (see `linear::use_bfloat16`).
  void use_bfloat16();

  std::int64_t harmonics() const { return source_mix_.weight.size(1); }
  const hift_config& config() const { return config_; }

  /// How many mel frames to the left of a frame affect its samples, rounded up generously as in the reference
  /// (bounded_vocoder.py:15-37).
  std::int64_t history_frames() const;

private:
  struct stage {
    std::int64_t rate = 1;
    padded_conv up; ///< past_only: after nearest-neighbour upsampling; both_sides: weight of a transposed conv
    padded_conv source_down;
    snake_block source_block;
    std::vector<snake_block> blocks;
  };

  padded_conv upsampling(const tensor_map& weights, const std::string& name, std::int64_t out, std::int64_t in) const;
  void prepare_transform();

  /// Real parts above imaginary ones, [B, fft + 2, columns] → samples [B, (columns - 1) * hop].
  at::Tensor to_samples_on_device(at::Tensor spectrum, const at::Tensor& columns) const;

  hift_config config_;
  reach looks_;
  std::vector<stage> stages_;
  padded_conv conv_post_;
  linear source_mix_;
  at::Tensor window_;
  at::Tensor transform_; ///< [fft + 2, fft]: the window, then cosines above negative sines
  std::optional<cpu::overlapped_transform> to_samples_; ///< on the CPU
  at::Tensor back_;    ///< elsewhere: [fft + 2, 1, fft], what each part contributes to each position, window included
  at::Tensor overlap_; ///< elsewhere: [1, 1, fft], the window squared
};

} // namespace parley::inference::speech
