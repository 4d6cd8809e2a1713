#pragma once

#include "inference/kernels/device_graph.hpp"
#include "inference/vocoder/hift_causal.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Streams the causal vocoder with a bounded memory of the past (docs/model/talker.md 10). How the mel frames are
/// divided into calls does not affect the output. One object serves all sessions; each has a `state`. Not thread-safe.
class bounded_vocoder {
public:
  /// One stream's past. Offsets are frames since its start; tensors are float32 unless said otherwise.
  struct state {
    at::Tensor mel;    ///< [1, bins, frames], from `mel_offset`
    at::Tensor source; ///< [1, samples], from `source_offset`
    at::Tensor phase;  ///< [1, harmonics] cycles in [0, 1), double
    std::int64_t mel_offset = 0;
    std::int64_t source_offset = 0;
    std::int64_t source_end = 0; ///< frames that have an excitation
    std::int64_t emitted = 0;    ///< frames whose samples have been returned
    bool finalized = false;
  };

  struct job {
    state* session;
    at::Tensor mel; ///< [1, bins, frames], new frames; may be empty in a final call
    bool final = false;
  };

  /// noise [rows, harmonics]: uniform in [0, 1), one row per sample, read cyclically. The network processes
  /// `block_frames` frames at a time; the reference uses 16. Throws std::runtime_error if the table does not fit the
  /// network.
  bounded_vocoder(std::shared_ptr<const hift_causal> network, const at::Tensor& noise, std::int64_t block_frames = 16);

  state start() const;

  /// One batched call for all jobs. Returns the new samples of each, float32 [1, n], where n may be 0. A stream that is
  /// not final holds back `delay_frames`. Throws std::logic_error for a stream that has been finalized.
  std::vector<at::Tensor> stream(std::span<const job> jobs) const;

  std::int64_t delay_frames() const { return network_->f0_right() + network_->decoder_right(); }
  std::int64_t history_frames() const { return history_; }
  std::int64_t frame_samples() const { return network_->trunk().config().frame_samples(); }

private:
  struct step {
    state* session;
    bool final;
    std::vector<at::Tensor>* speech;
  };

  // One session after another, those with equal numbers of frames in one call of the network: on the CPU.
  std::vector<at::Tensor> stream_in_groups(std::span<const job> jobs) const;
  void advance(std::span<const step> steps) const;
  void extend_sources(std::span<const step> steps) const;
  void emit(std::span<const step> steps) const;
  at::Tensor excitation(state& session, const at::Tensor& f0) const;

  // All sessions in one call of the network, whatever their lengths: elsewhere (bounded_vocoder_together.cpp).
  struct plan;
  std::vector<at::Tensor> stream_together(std::span<const job> jobs) const;
  std::vector<at::Tensor> advance_together(std::span<const job> jobs) const;
  at::Tensor extend_sources(std::span<const job> jobs, const plan& at, const at::Tensor& mels) const;
  at::Tensor f0_by_graph(const at::Tensor& heard) const;
  at::Tensor speech_by_graph(const at::Tensor& mel, const at::Tensor& source, const at::Tensor& columns) const;

  at::Tensor cycles(const at::Tensor& f0, const at::Tensor& phase) const;
  at::Tensor excite(const at::Tensor& cycles, const at::Tensor& f0, const at::Tensor& noise) const;

  std::shared_ptr<const hift_causal> network_;
  at::Tensor mixed_noise_; ///< [rows]: the mixed value of each row of the noise table
  at::Tensor
      noise_frames_; ///< elsewhere than on the CPU: [n, frame_samples], the noise from each row at which a frame can begin
  std::int64_t noise_step_ = 0; ///< distance of those rows
  mutable graph_cache graphs_{64};
  std::int64_t block_frames_;
  std::int64_t history_;
};

} // namespace parley::inference::speech
