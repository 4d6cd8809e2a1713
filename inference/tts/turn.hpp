#pragma once

#include "inference/random.hpp"
#include "inference/tts/embeddings.hpp"
#include "inference/tts/llama.hpp"
#include "inference/tts/sampler.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// Which of the reference's loops a turn follows (docs/model/talker.md 4.1 to 4.3).
enum class tts_form {
  streamed, ///< groups of a streamed chat answer; the configured attention type applies
  duplex,   ///< one group per unit
  whole     ///< one group for a whole chat answer
};

/// The limits of a group's length.
struct tts_limits {
  int most = 500; ///< steps
  int least = 0;  ///< steps before the end token becomes possible
};

/// The reference's limits (docs/model/talker.md 4.1 to 4.3).
inline constexpr tts_limits streamed_limits{500, 0};
inline constexpr tts_limits whole_limits{2048, 50};
constexpr tts_limits duplex_limits(bool turn_begins, bool turn_ends) {
  return {26, turn_begins || turn_ends ? 0 : 26};
}

/// One session's spoken turn as a state machine: `begin` a group, then call `next` and `take` until it is no longer
/// `running`. `tts_advance` makes one step for many turns at once.
class tts_turn {
public:
  /// `embeddings` and `model` must outlive this.
  tts_turn(const tts_embeddings& embeddings, const tts_llama& model, tts_form form, tts_sampling sampling);

  /// Resets everything: the next group begins a new turn.
  void reset();

  /// Starts a group with its condition, float32 [n, width], marks included. Throws std::logic_error if one is running.
  void begin(at::Tensor condition, tts_limits limits);

  bool running() const { return running_; }

  /// What to feed the model next. It points into this object. Throws std::logic_error if no group is running.
  tts_llama::row next();

  /// Takes the resulting logits [codes] and chooses a token; uses one random number unless greedy.
  void take(std::span<const float> logits, random_source& chance);

  /// Whether the device may choose the next tokens by `choice`, and they are then taken.
  bool chooses_on_device() const;
  tts_choice choice(std::int64_t steps, random_source& chance) const;

  /// Takes tokens that the device has chosen after `next`, until the group ends; each uses up one random number. Throws
  /// std::runtime_error where there is none.
  void take(std::span<const std::int64_t> chosen, random_source& chance);

  /// Forces the next tokens, in this group and those that follow, whatever the logits say: they were chosen before.
  /// Where the result is the same, one step takes as many as it can. Each uses up its random number.
  void force(std::span<const std::int64_t> tokens) { forced_.insert(forced_.end(), tokens.begin(), tokens.end()); }

  /// Everything chosen in the turn, and in the current or last group: `tokens` and the tokens that ended a group.
  std::span<const std::int64_t> chosen() const { return chosen_; }
  std::span<const std::int64_t> group_chosen() const { return std::span(chosen_).subspan(chosen_begin_); }

  /// Ends the running group at once; the tokens chosen so far stay.
  void stop();

  /// Tokens of the current or last group, without its end token.
  std::span<const std::int64_t> group() const { return std::span(tokens_).subspan(group_begin_); }

  /// Whether the last group ended with its end token (rather than by its limit).
  bool ended_by_token() const { return ended_by_token_; }

  /// All tokens of the turn.
  std::span<const std::int64_t> tokens() const { return tokens_; }

  /// The tokens that the penalty applies to in this step, and the impossible token, or -1.
  std::span<const std::int64_t> penalised() const;
  std::int64_t banned() const;

  /// Position at which the next group begins.
  std::int64_t position() const { return position_; }
  bool begun() const { return !groups_.empty(); }
  const tts_cache& cache() const { return cache_; }
  const tts_sampling& sampling() const { return sampling_; }

private:
  struct group_record {
    at::Tensor condition;
    std::size_t first_token, tokens;
    std::int64_t rows() const { return condition.size(0) + static_cast<std::int64_t>(tokens); }
  };

  void choose(std::int64_t token);
  void finish();
  void keep_first_and_last_group();
  std::size_t forced_at_once() const;

  const tts_embeddings* embeddings_;
  const tts_llama* model_;
  tts_form form_;
  tts_sampling sampling_;
  tts_limits limits_;
  tts_cache cache_;
  std::vector<std::int64_t> tokens_, chosen_;
  std::deque<std::int64_t> forced_;
  std::size_t chosen_begin_ = 0, taking_ = 0; ///< `taking_`: number of forced tokens in the current step
  std::vector<group_record> groups_;
  at::Tensor condition_, feed_;
  std::size_t group_begin_ = 0;
  std::int64_t position_ = 0, fed_ = 0;
  int step_ = 0;
  bool running_ = false, ended_by_token_ = false;
  std::vector<float> probabilities_;
};

/// One session's part of a step.
struct tts_step {
  tts_turn* turn;
  random_source* chance;
};

/// The first half of a decode step, one batched call for all turns: logits of those that are running, float32 [codes]
/// on the CPU, undefined for the others. If it throws, the turns are unchanged.
std::vector<at::Tensor> tts_logits(const tts_llama& model, std::span<const tts_step> steps);

/// The second half: the turn takes its logits, if there are any. Throws std::runtime_error if they are NaN.
void tts_take(const tts_step& step, const at::Tensor& logits);

/// Whether `tts_choose` may be called for a turn: it is for a device, for turns that nothing is forced on, and random
/// numbers that can be gone back to.
bool tts_chooses(const tts_llama& model, const tts_step& step);

/// Several decode steps of turns that are running, with one wait for the device: the tokens, to be taken. They have the
/// same top_k and penalty window. If it throws, the turns are unchanged.
std::vector<std::vector<std::int64_t>> tts_choose(const tts_llama& model, std::span<const tts_step> steps,
                                                  std::int64_t count);

/// One decode step of every turn that is running.
void tts_advance(const tts_llama& model, std::span<const tts_step> steps);

} // namespace parley::inference::speech
