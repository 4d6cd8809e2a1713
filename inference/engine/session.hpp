#pragma once

#include "inference/chat/answer_decoder.hpp"
#include "inference/chat/prompt.hpp"
#include "inference/duplex/audio_intake.hpp"
#include "inference/duplex/unit_decoder.hpp"
#include "inference/duplex/window.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/planner.hpp"

#include <ATen/core/Tensor.h>

#include <deque>
#include <optional>

namespace parley::inference {

using engine_clock = std::chrono::steady_clock;

/// What a duplex session carries from unit to unit.
struct duplex_state {
  /// What a failed unit is taken back to.
  struct snapshot {
    std::int64_t cache_length;
    std::int64_t encoder_length;
    audio::mel_stream stream;
    duplex::audio_intake intake;
    duplex::unit_decoder decoder;
    std::size_t history;
    std::vector<token_id> tail;
  };

  duplex_state(llm::duplex_sampling how, audio::encoder_cache cache, duplex::unit_decoder decisions,
               duplex::window units)
      : sampling(how), encoder(std::move(cache)), decoder(std::move(decisions)), window(std::move(units)) {}

  llm::duplex_sampling sampling;
  audio::mel_stream stream;
  audio::encoder_cache encoder;
  duplex::audio_intake intake;
  duplex::unit_decoder decoder;
  duplex::window window;
  std::vector<token_id> prefix;  ///< of the prompt, until it is built
  std::vector<token_id> history; ///< what the repetition penalty knows
  std::vector<token_id> tail;    ///< terminator and `</unit>` of the last unit, to be fed before the next one

  std::deque<submit_unit> waiting;
  std::optional<submit_unit> unit; ///< the running one
  std::optional<snapshot> before;
  bool force_listen = false;
  std::int64_t sound_rows = 0;
  std::vector<duplex::window_step> slides; ///< still to be done, oldest first
  llm::kv_segment moved;                   ///< rows behind the slide that is under way
};

/// What a chat turn carries from token to token.
struct chat_state {
  std::deque<submit_turn> waiting;
  std::optional<submit_turn> turn; ///< the running one
  llm::chat_sampling sampling;
  std::optional<random_stream> chance; ///< the turn's own, if it has a seed
  chat::prompt_ids prompt;
  std::optional<chat::answer_decoder> answer;
  std::string text;
  int drawn = 0;
};

/// What the rows in `rows` are for.
enum class purpose { prompt, unit, close_unit, slide, turn };

/// One session: a small state machine over the stages.
struct session {
  session(session_id number, llm::kv_cache keys, std::uint64_t seed)
      : id(number), cache(std::move(keys)), chance(seed, substream::text) {}

  session_id id;
  llm::kv_cache cache;
  random_stream chance;
  llm::sampling_scratch scratch;

  stage at = stage::idle;
  purpose why = purpose::prompt;
  engine_clock::time_point began, prefilled;
  at::Tensor rows; ///< of a prefill: [n, hidden]
  std::int64_t rows_done = 0;
  std::vector<std::vector<float>> clips; ///< sounds of the prompt
  at::Tensor hidden;                     ///< [1, hidden] of the newest row
  at::Tensor logits;                     ///< float32 [vocabulary] on the CPU, of the newest row
  token_id token = 0;                    ///< to be fed in `decode`
  usage prompt_usage;

  std::optional<duplex_state> duplex;
  std::optional<chat_state> chat;
};

} // namespace parley::inference
