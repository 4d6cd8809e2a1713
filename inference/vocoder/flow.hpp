#pragma once

#include "inference/tts/speech_config.hpp"
#include "inference/vocoder/dit.hpp"
#include "inference/vocoder/flow_encoder.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Speech tokens to mel frames by flow matching, chunk by chunk (docs/model/talker.md 7). One object serves all
/// sessions.
class flow {
public:
  /// How much of the conformer's past trimming keeps; the reference's generations differ (docs/model/talker.md 7.6).
  enum class trim_rule { per_rate, packed };

  /// One stream's memory. Copies share its tensors: a fresh stream is a copy of its voice's state.
  struct state {
    flow_encoder::cache encoder;
    std::vector<dit::cache> steps; ///< one per solver step
  };

  struct job {
    state* stream;
    at::Tensor tokens;     ///< [n] int64, on the CPU
    at::Tensor speaker;    ///< [bins], see `project_speaker`
    bool last = false;     ///< otherwise the last three tokens are lookahead only
    at::Tensor prompt_mel; ///< float32 [frames, bins]: known mel of the first rows; undefined = none
  };

  /// Intermediate values, to be compared with recordings.
  struct trace {
    std::vector<at::Tensor> encoded;     ///< for each job [rows, width]
    std::vector<at::Tensor> mu;          ///< for each job [rows, bins]
    std::vector<at::Tensor> x;           ///< before each step, rows of all jobs [N, bins]
    std::vector<at::Tensor> conditioned; ///< velocities in each step [N, bins]
    std::vector<at::Tensor> unconditioned;
    std::vector<float> t;
  };

  /// `weights`: flow.pt. noise [bins, columns]: Gaussian, fixed for the object's life. 1 <= steps <= 16. Throws
  /// std::runtime_error if something is missing or does not fit.
  flow(const tensor_map& weights, const flow_config& config, int steps, at::Tensor noise);

  /// Speaker vector [192] → [bins], in the weights' dtype.
  at::Tensor project_speaker(const at::Tensor& embedding) const;

  /// One batched call. Returns mel float32 [1, bins, rows] for each job, rows = 2 * (tokens minus the three lookahead
  /// ones). Throws std::out_of_range if a stream exceeds the noise table.
  std::vector<at::Tensor> run(std::span<const job> jobs, trace* seen = nullptr) const;

  /// Drops what is older than the reference keeps, for a voice of `prompt_rows` mel rows.
  void trim(state& stream, std::int64_t prompt_rows, trim_rule rule) const;

  /// Computes the large products in bfloat16 from now on (see `linear::use_bfloat16`).
  void use_bfloat16();

  int steps() const { return static_cast<int>(times_.size()); }
  const dit& estimator() const { return estimator_; }
  const flow_encoder& encoder() const { return encoder_; }
  std::int64_t vocabulary() const { return embedding_.size(0); }

private:
  struct plan;
  at::Tensor condition(std::span<const job> jobs, const at::Tensor& mu, const plan& at) const;
  at::Tensor solve(std::span<const job> jobs, const at::Tensor& mu, const plan& at, trace* seen) const;

  at::Tensor embedding_;
  linear speaker_;
  flow_encoder encoder_;
  linear to_mel_;
  dit estimator_;
  at::Tensor noise_;
  double guidance_;
  std::vector<float> times_, widths_;
  std::vector<dit::modulation> modulations_;
};

} // namespace parley::inference::speech
