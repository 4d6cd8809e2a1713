#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/tts/sampler.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// What the next speech tokens of a session are chosen by.
struct tts_choice {
  tts_sampling rules;               ///< not greedy, and without margins
  std::vector<std::int64_t> recent; ///< the last tokens, at most `rules.penalty_window`
  std::int64_t banned_steps = 0;    ///< in so many of the next steps the end token is impossible
  std::vector<double> chances;      ///< uniform in [0, 1), one for each step
};

/// Chooses speech tokens on a device by the rules of `tts_probabilities` and `tts_draw`, several steps without the host.
/// Sums are rounded otherwise than on the CPU, so a token may differ if its chance lies on the border of two; the same
/// device chooses the same tokens from the same chances. Kernels and no waiting, the same whatever the number of sessions.
class device_draw {
public:
  /// The rules' `penalty_window` and `top_k` are equal for all. Adds to `numbers` what the device must know. `codes`: how
  /// many tokens there are; the last one ends.
  device_draw(std::span<const tts_choice> how, std::int64_t codes, std::int64_t steps, packed_upload& numbers);

  /// Reads it back once it has been sent.
  void use(const packed_upload& sent);

  /// The next step's tokens int64 [sessions], from its logits float32 [sessions, codes]; any token where these are not
  /// numbers.
  at::Tensor next(const at::Tensor& logits);

  /// All tokens so far on the device, int64 [sessions, steps]: -1 where the logits were not numbers.
  const at::Tensor& chosen() const { return chosen_; }

private:
  at::Tensor narrowed(const at::Tensor& scores) const;

  std::int64_t sessions_, codes_, steps_, step_ = 0, window_, top_k_;
  bool narrows_ = false; ///< for some session
  packed_upload::part recent_part_, chance_part_, banned_part_, narrow_part_, rule_part_, share_part_;
  at::Tensor recent_;                        ///< [sessions, window + steps], the newest last; `codes` = none
  at::Tensor chances_;                       ///< double [sessions, steps]
  at::Tensor banned_;                        ///< bool [sessions, steps]
  at::Tensor narrows_in_;                    ///< bool [sessions, 2]: in the first step, in those after it
  at::Tensor temperature_, penalty_, share_; ///< [sessions, 1]
  at::Tensor chosen_;
};

} // namespace parley::inference::speech
