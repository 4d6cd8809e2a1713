#pragma once

#include "inference/chat/answer_decoder.hpp"
#include "inference/chat/prompt.hpp"
#include "inference/duplex/audio_intake.hpp"
#include "inference/duplex/known_unit.hpp"
#include "inference/duplex/unit_decoder.hpp"
#include "inference/duplex/window.hpp"
#include "inference/engine/picture_desk.hpp"
#include "inference/engine/prompt_shelf.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/planner.hpp"
#include "inference/speech/chat_speech.hpp"
#include "inference/speech/duplex_speech.hpp"
#include "inference/thinker.hpp"

#include <ATen/core/Tensor.h>

#include <deque>
#include <exception>
#include <optional>

namespace parley::inference {

using engine_clock = std::chrono::steady_clock;

/// A unit or turn that waits for the one before it, with its pictures, which are being sliced; null without any.
template<class Order>
struct queued {
  Order order;
  std::shared_ptr<picture_order> pictures;
};

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
    chances chance;
    std::optional<speech::duplex_speech::mark> speech; ///< once the unit is being spoken
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
  spoken_prompt prompt;          ///< until the session has it
  std::vector<token_id> history; ///< what the repetition penalty knows
  std::vector<token_id> tail;    ///< terminator and `</unit>` of the last unit, to be fed before the next one

  std::optional<submit_unit> unit; ///< the running one
  std::optional<snapshot> before;  ///< once it has begun
  bool force_listen = false;
  std::vector<token_id> drawn, spoken; ///< of the unit; `spoken` once its sound is made
  cut_point cut = cut_point::none;
  duplex::known_unit known; ///< of a replayed unit
  bool cut_awaits = false;  ///< a replayed unit is cut once its words are there
  at::Tensor sound;         ///< [tokens, hidden], the rows of the unit's sound, until it is gathered
  std::int64_t sound_rows = 0;
  std::vector<duplex::window_step> slides; ///< still to be done, oldest first
  llm::kv_segment moved;                   ///< rows behind the slide that is under way

  double speech_temperature = 0;
  std::shared_ptr<random_stream> speech_chance, noise_chance; ///< with `speech`
  std::optional<speech::duplex_speech> speech;                ///< none: it answers by text alone
  std::vector<at::Tensor> reply;                              ///< [1, hidden] of each token that the unit says
  step_output answer;                                         ///< of a unit that is being spoken
  std::optional<std::int64_t> told;                           ///< its text has left, and told of so many text tokens
  std::int64_t owed_text = 0; ///< those that a cut fed afterwards: the next unit tells of them
};

/// What a chat turn carries from token to token.
struct chat_state {
  std::optional<submit_turn> turn; ///< the running one
  llm::chat_sampling sampling;
  std::optional<random_stream> chance; ///< the turn's own, if it has a seed
  chat::prompt_ids prompt;
  std::optional<chat::answer_decoder> answer;
  std::string text;
  std::vector<token_id> drawn;
  struct part {
    std::size_t chosen = 0, spoken = 0; ///< tokens that deltas have told
    std::size_t bytes = 0, samples = 0; ///< what still comes up that was told before the turn was replayed
  } told;
  chances before; ///< where the session's streams stood

  bool speaks = false;                ///< this turn is to be heard
  bool worded = false;                ///< all its words are known,
  engine_clock::time_point worded_at; ///< since then
  finish reason = finish::turn_end;
  std::optional<speech::chat_speech> speech; ///< once its voice is there
  std::vector<at::Tensor> hidden;            ///< [1, hidden] of each token of the answer that was fed
  std::size_t grouped = 0;                   ///< tokens that have gone into groups
  struct group {
    at::Tensor condition; ///< float32 [words, tts hidden]
    bool last;            ///< no words will follow
  };
  std::deque<group> groups; ///< words that wait to be spoken
  bool flushed = false;     ///< the last group's rest is on its way
  std::vector<float> sound; ///< 24 kHz, of an answer that is heard at its end
};

/// What the rows in `rows` are for.
enum class purpose { prompt, unit, close_unit, slide, turn };

/// One session: a small state machine over the stages. The engine's thread alone touches it.
struct session {
  session(session_id number, llm::kv_cache keys, std::uint64_t seed_of_all)
      : id(number), seed(seed_of_all), cache(std::move(keys)), chance(seed, substream::text),
        spoken_seeds(seed, substream::speech_tokens) {}

  bool idle() const { return at == stage::idle && speech_at == stage::idle && !voice_awaited; }

  /// Where its streams of chance stand, and taking them there.
  chances chance_now() const;
  void go_on_from(const chances& where);

  session_id id;
  std::uint64_t seed;
  llm::kv_cache cache;
  random_stream chance;
  random_stream spoken_seeds; ///< one for each chat turn without a seed of its own
  llm::sampling_scratch scratch;

  stage at = stage::idle;        ///< of the half that thinks: idle to decode
  stage speech_at = stage::idle; ///< of the half that speaks: idle, speak or sound
  bool voice_awaited = false;    ///< from the voice desk
  double tts_ms = 0, token2wav_ms = 0;
  purpose why = purpose::prompt;
  engine_clock::time_point began, prefilled;
  at::Tensor rows; ///< of a prefill: [n, hidden]
  std::int64_t rows_done = 0;
  std::vector<std::int64_t> kept_rows;          ///< those of them whose hidden states the reply is spoken from
  std::vector<std::vector<float>> clips;        ///< sounds of the prompt
  std::optional<thinker::clip_hearing> hearing; ///< of those, or of the prompt's voice, once it has begun
  at::Tensor hidden;                            ///< [1, hidden] of the newest row
  at::Tensor logits;                            ///< float32 [vocabulary] on the CPU, of the newest row
  token_id token = 0;                           ///< to be fed in `decode`
  std::exception_ptr trouble;                   ///< why none could be drawn
  usage prompt_usage;

  std::deque<queued<submit_unit>> units; ///< waiting; of a duplex session
  std::deque<queued<submit_turn>> turns; ///< waiting; of a chat
  bool over = false;                     ///< it came to nothing, and goes at the end of the pass

  std::shared_ptr<picture_order> pictures; ///< of the running unit or turn, until they are seen
  std::vector<at::Tensor> seen;            ///< [pieces, query_num, hidden] each
  std::int64_t pieces_seen = 0;
  int pieces = 0; ///< of the running one

  std::optional<duplex_state> duplex;
  std::optional<chat_state> chat;
};

} // namespace parley::inference
