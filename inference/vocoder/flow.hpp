#pragma once

#include "inference/kernels/device_graph.hpp"
#include "inference/speech/speech_config.hpp"
#include "inference/vocoder/dit.hpp"
#include "inference/vocoder/flow_encoder.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Speech tokens to mel frames by flow matching, chunk by chunk (docs/model/talker.md 7). One object serves all
/// sessions.
class flow {
public:
  /// How much of the conformer's past trimming keeps; the reference's generations differ (docs/model/talker.md 7.6).
  enum class trim_rule { per_rate, packed };

  /// Elsewhere than on the CPU: what all streams remember.
  struct memory {
    flow_encoder::memory encoder;
    dit::memory estimator;
  };

  /// One stream's part of it. A copy can be gone back to.
  struct remembered {
    flow_encoder::remembered encoder;
    dit::remembered estimator;
  };

  /// What one stream remembers. Copies share it: a fresh stream is a copy of its voice's state.
  struct state {
    flow_encoder::cache encoder;   ///< on the CPU
    std::vector<dit::cache> steps; ///< on the CPU, one per solver step
    remembered shared;             ///< elsewhere

    /// Mel rows that the estimator sees.
    std::int64_t rows() const { return steps.empty() ? shared.estimator.keys_values.rows() : steps.front().rows(); }

    /// Bytes of keys and values, and of what the convolutions look back to, for a stream that began as this state does.
    std::size_t attention_bytes() const;
    std::size_t context_bytes() const;
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

  /// The same for the beginning of a voice, of which streams are copies. Elsewhere than on the CPU in memory of its own,
  /// so that other threads may call `run` meanwhile.
  void begin(const job& voice) const;

  /// Drops what is older than the reference keeps, for a voice of `prompt_rows` mel rows.
  void trim(state& stream, std::int64_t prompt_rows, trim_rule rule) const;

  /// Computes the large products in bfloat16 from now on (see `linear::use_bfloat16`); elsewhere than on the CPU, the
  /// estimator (see `dit::use_bfloat16`). Before any stream begins.
  void use_bfloat16();

  int steps() const { return static_cast<int>(times_.size()); }
  const memory* shared_memory() const { return memory_ ? &*memory_ : nullptr; }
  const dit& estimator() const { return estimator_; }
  const flow_encoder& encoder() const { return encoder_; }
  std::int64_t vocabulary() const { return embedding_.size(0); }

private:
  struct plan;
  void prepare_steps();
  memory make_memory(std::int64_t spare) const;
  std::vector<at::Tensor> run(std::span<const job> jobs, const memory* in, trace* seen) const;
  at::Tensor condition(std::span<const job> jobs, const at::Tensor& mu, const plan& at) const;
  at::Tensor solve(std::span<const job> jobs, const at::Tensor& mu, const plan& at, trace* seen) const;

  /// Elsewhere than on the CPU: from noise x [N, bins] to mel [N, bins], given context [2, N, 3 * bins]. Asks for nothing
  /// but kernels, over memory that stays where it is until a stream takes rows.
  at::Tensor solve(at::Tensor x, const at::Tensor& context, const dit::memory& in, const dit::shared_places& at,
                   trace* seen) const;
  at::Tensor solve_by_graph(const at::Tensor& x, const at::Tensor& context, const plan& at) const;
  std::optional<dit::padding> padding_of(std::span<const std::int64_t> lengths,
                                         std::span<const std::int64_t> past) const;
  at::Tensor advance(std::size_t k, const at::Tensor& x, const at::Tensor& velocity, trace* seen) const;

  at::Tensor embedding_;
  linear speaker_;
  flow_encoder encoder_;
  linear to_mel_;
  dit estimator_;
  at::Tensor noise_;
  double guidance_;
  std::vector<float> times_, widths_;
  std::vector<dit::modulation> modulations_;

  // Elsewhere than on the CPU.
  std::optional<memory> memory_;
  mutable std::shared_ptr<const row_pool::region> spare_rows_, spare_inputs_; ///< for what pads a call
  mutable graph_cache graphs_{16};
};

} // namespace parley::inference::speech
