#pragma once

#include "inference/quirks.hpp"
#include "inference/random.hpp"
#include "inference/text/tokenizer.hpp"
#include "inference/vocabulary.hpp"

#include <optional>
#include <span>
#include <vector>

// How a token is sampled from a row of logits (docs/model/thinker.md 5.4, 6.3, 6.4). Plain arithmetic, no torch: the
// rows of a batch are sampled independently of each other.
namespace parley::inference::llm {

/// One draw, recorded for replays and for tests that check how close a decision was.
struct draw_record {
  double u = 0;       ///< the random number; unused by an argmax
  token_id token = 0; ///< the token chosen
  double margin = 0;  ///< argmax: distance to the second; otherwise distance from u to the edge of the token's interval
  int candidates = 0; ///< tokens with a nonzero probability; 0 for an argmax
};

/// Working memory for one row, reused from token to token.
struct sampling_scratch {
  struct candidate {
    token_id id;
    float logit;
    double weight;
  };
  std::vector<float> heap;
  std::vector<candidate> kept;
  std::vector<draw_record>* records = nullptr; ///< optional: receives every draw
};

/// Token ids that the duplex rules refer to.
struct duplex_sampling_ids {
  token_id chunk_eos;
  token_id turn_eos;
  token_id listen;                 ///< the token that `listen_prob_scale` and `listen_top_k` act on
  std::vector<token_id> forbidden; ///< impossible in the second draw: <|tts_pad|>, bad_token_ids, <|chunk_eos|>
};

/// Looks the ids up by their text in this vocabulary; `how` decides which token is `listen`.
duplex_sampling_ids make_duplex_sampling_ids(const tokenizer& tokens, const quirks& how);

/// A duplex session's options (docs/model/thinker.md 5.3, docs/protocol.md 3.1).
struct duplex_sampling {
  sampling_options base;
  double listen_prob_scale = 1.0;
  std::optional<int> listen_top_k; ///< none = off
};

/// One duplex decision (5.4) on `logits` [vocabulary]. `history` is the session's list of sampled tokens and is
/// extended; `logits` are overwritten. Whatever the options, it returns an id whose logit is not -inf, or throws
/// std::runtime_error if the logits are NaN or no token is left.
token_id draw_duplex(std::span<float> logits, const duplex_sampling_ids& ids, const duplex_sampling& options,
                     const quirks& how, std::vector<token_id>& history, random_source& chance,
                     sampling_scratch& scratch);

/// What a device sends of a row of logits: enough for most draws.
struct short_row {
  std::vector<token_id> ids; ///< ascending: those of the largest logits, and all that the rules name
  std::vector<float> logits;
  float others;            ///< no other logit is larger
  double total;            ///< sum of e^(logit - largest) over the whole row; not finite if the row is not
  double before_chunk_eos; ///< the same over the ids before `chunk_eos`
};

/// The same decision, by the same random numbers, from a row that contains `chunk_eos`, `turn_eos` and `listen`. None,
/// with nothing changed, if it needs the whole row: for records, without top-k, or if an equally large logit may be
/// missing. A random number that lies within the rounding of `total` (1e-7) from where `chunk_eos` begins or ends may
/// decide otherwise.
std::optional<token_id> draw_duplex(short_row row, const duplex_sampling_ids& ids, const duplex_sampling& options,
                                    const quirks& how, std::vector<token_id>& history, random_source& chance,
                                    sampling_scratch& scratch);

/// Chat options (6.3, 6.4). The penalty depends on the sign: positive logits are divided, others multiplied.
struct chat_sampling {
  bool greedy = false;
  double temperature = 0.7;
  int top_k = 100;    ///< 0 = off
  double top_p = 0.8; ///< >= 1 = off
  double repetition_penalty = 1.02;
  double length_penalty = 1.0; ///< applies to the terminators
  bool exact_top_k = true;     ///< ties beyond k are cut (6.4) or kept (6.3)
};

/// One chat token from `logits` [vocabulary], which are overwritten. The repetition penalty applies to the ids in
/// `seen`, which may repeat; those in `banned` are never sampled. Throws like `draw_duplex`.
token_id draw_chat(std::span<float> logits, std::span<const token_id> banned, std::span<const token_id> terminators,
                   std::span<const token_id> seen, const chat_sampling& options, random_source& chance,
                   sampling_scratch& scratch);

/// The same token from a row that contains the terminators; none as in `draw_duplex`.
std::optional<token_id> draw_chat(short_row row, std::span<const token_id> banned,
                                  std::span<const token_id> terminators, std::span<const token_id> seen,
                                  const chat_sampling& options, random_source& chance, sampling_scratch& scratch);

/// What top-k, top-p and softmax leave of a row: (id, probability), ids ascending, in `scratch.kept` (weight).
/// `temperature` must not be one that `takes_the_likeliest`. top_k <= 0 and top_p outside (0, 1) mean off. NaN logits
/// are left out.
void filter_candidates(std::span<const float> logits, double temperature, int top_k, double top_p, bool exact_top_k,
                       sampling_scratch& scratch);

} // namespace parley::inference::llm
