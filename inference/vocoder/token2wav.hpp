#pragma once

#include "inference/vocoder/bounded_vocoder.hpp"
#include "inference/vocoder/flow.hpp"
#include "inference/vocoder/legacy_vocoder.hpp"
#include "inference/vocoder/noise.hpp"
#include "inference/vocoder/voice.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <variant>
#include <vector>

namespace parley::inference::speech {

/// Options that a server may choose; everything else comes from the folder.
struct token2wav_options {
  int steps = 5; ///< steps of the flow solver; the reference's server uses 5
  /// Send the silence that the reference puts before a turn's first samples (docs/model/talker.md 9, 10).
  bool leading_silence = false;
  /// The reference uses 16; processing a whole chunk at a time sounds the same and costs less than half.
  std::int64_t vocoder_block_frames = 56;
  /// The dtype in which the flow model works; its mel is float32. The vocoder turns the mel's rounding errors into
  /// phase, which accumulates: float64 shows whether a difference comes from rounding or from the arithmetic itself.
  at::ScalarType acoustics = at::kFloat;
  partial_window speaker_windows = partial_window::by_opset; ///< for the network that identifies the speaker
  /// On the CPU, in the flow model and the vocoder (see `linear::use_bfloat16`). Elsewhere the flow's estimator is in
  /// bfloat16, and the vocoder in float32: it turns rounding errors into phase.
  bool bfloat16_products = false;
};

/// Turns speech tokens into 24 kHz sound in the voice of a recording, stream by stream (docs/model/talker.md 5 to 10).
/// Serves all sessions.
class token2wav {
public:
  /// The two published generations (docs/model/talker.md 0); they sound different.
  enum class generation { legacy, causal };

  /// One session's turn.
  struct stream {
    std::shared_ptr<const voice> speaker;
    flow::state acoustic;
    std::variant<bounded_vocoder::state, legacy_vocoder::state> vocoder;
    bool sounded = false; ///< some samples have been returned
    bool ended = false;
  };

  struct job {
    stream* session;
    std::span<const std::int64_t> tokens; ///< the last three are only lookahead, unless `last`
    bool last = false;
    random_source* chance = nullptr; ///< source of noise, which the legacy generation draws in each call …
    at::Tensor noise;                ///< … unless it is given here: float32 [1, samples, harmonics] on the CPU
  };

  /// The mel of each job, [1, bins, frames], to be compared with recordings.
  struct trace {
    std::vector<at::Tensor> mels;
  };

  /// Which generation a folder contains, judged by its files.
  static generation generation_of(const std::filesystem::path& folder);

  /// Throws std::runtime_error naming the file that is missing or wrong.
  token2wav(const std::filesystem::path& folder, const noise_tables& noise, token2wav_options options = {},
            at::Device device = at::kCPU);

  /// Prepares a voice. Takes seconds at real sizes, so the caller should keep it (`voice_cache`).
  std::shared_ptr<const voice> prepare(voice_features heard) const;

  /// The beginning of a turn in this voice. Costs nothing: it shares the voice's tensors, on a device until its first call,
  /// which copies them.
  stream start(std::shared_ptr<const voice> speaker) const;

  /// One batched call for all jobs. Returns the new samples of each, float32 [n], finite, on the CPU. Throws
  /// std::logic_error for a stream that has ended, and for a call with fewer than four tokens that is not the last;
  /// std::runtime_error if a network's output is NaN. If it throws, the streams and the jobs' random sources are
  /// unchanged.
  std::vector<at::Tensor> run(std::span<const job> jobs, trace* seen = nullptr) const;

  /// What a stream's vocoder remembers, at most.
  std::size_t vocoder_bytes() const;

  generation kind() const { return kind_; }
  const flow& acoustic() const { return *flow_; }
  const voice_ear& ear() const { return *ear_; }

private:
  std::vector<at::Tensor> extend(std::span<const job> jobs, trace* seen) const;
  std::vector<at::Tensor> mels_of(std::span<const job> jobs) const;
  std::vector<at::Tensor> draw_noise(std::span<const job> jobs, const std::vector<at::Tensor>& mels) const;
  std::vector<at::Tensor> vocode(std::span<const job> jobs, const std::vector<at::Tensor>& mels) const;

  generation kind_;
  token2wav_options options_;
  at::Device device_;
  std::unique_ptr<flow> flow_;
  std::unique_ptr<voice_ear> ear_;
  std::unique_ptr<bounded_vocoder> causal_; ///< only one of the two is set
  std::unique_ptr<legacy_vocoder> legacy_;
};

/// Reads hift.pt or hift_original.pt (docs/model/talker.md 2); some of these files prefix names with "generator.".
/// Throws like `read_state_dict`.
tensor_map read_vocoder(const std::filesystem::path& file);

} // namespace parley::inference::speech
