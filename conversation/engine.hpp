#pragma once

#include "conversation/answer.hpp"
#include "conversation/duplex_options.hpp"
#include "conversation/media.hpp"
#include "conversation/message.hpp"
#include "conversation/token_score.hpp"
#include "conversation/turn_request.hpp"
#include "conversation/usage.hpp"

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

// The commands that an engine takes and the events that it answers with. Sessions (protocol/), their actors and logs (actors/)
// and the engine itself (inference/) all use these types. Plain structs: no torch, no wire format.
namespace parley::conversation {

/// Chosen by the engine's user, unique during the engine's life.
using session_id = std::uint64_t;

/// What a step cost (docs/protocol.md 4.1). Times in milliseconds.
struct step_metrics {
  int kv_cache_length = 0; ///< in rows; for a unit, before its end is fed (docs/model/thinker.md 5.3)
  double prefill_ms = 0;
  double generate_ms = 0;
  double llm_ms = 0;
  double tts_ms = 0;
  double token2wav_ms = 0;
  int n_tokens = 0;
  int n_tts_tokens = 0;
  int vision_slices = 0;
  int vision_tokens = 0;
  int window_events = 0; ///< how often the cache's window has slid so far
};

// ---- random choices

// A session that is opened again with the same seed and given the same input, together with the choices made then,
// becomes the same session, even on another engine if the `fingerprint` is the same. Whoever keeps both can move the
// session (actors/replay/replay_buffer.hpp).

/// The state of a session's random streams (random.hpp).
struct rng_state {
  using stream = std::array<std::uint64_t, 4>;
  stream text{};
  stream speech{}; ///< duplex: for speech tokens; chat: gives a seed to the speech of turns without one
  stream noise{};  ///< duplex only
};

/// Where a `cut` interrupted a unit.
enum class cut_point {
  none,     ///< not at all, or before its first decision, which forced it to listen
  deciding, ///< after the last sampled token, which was withdrawn
  speaking  ///< while its words, already known, were being spoken
};

/// The choices made in a duplex unit, beyond what follows from its input.
struct unit_choices {
  bool finished = false; ///< if false, only its text has been sent: the words are chosen, the sound is not complete
  bool forced = false;   ///< it had to listen: by request, or cut before the first decision
  cut_point cut = cut_point::none;
  std::vector<std::int64_t> sampled;    ///< text tokens, in order
  std::vector<std::int64_t> remembered; ///< those that the repetition penalty counts
  std::vector<std::int64_t> spoken;     ///< speech tokens, in order, including the one that ends them
  std::int64_t owed_text = 0;           ///< text tokens reported by the next unit's usage
  bool voice_open = false;              ///< the next unit's sound continues this one's
  rng_state after;
};

/// The choices made in a chat turn so far, and how much of it has been sent in `chat_delta`s.
struct turn_choices {
  std::vector<std::int64_t> sampled; ///< text tokens, in order
  std::vector<std::int64_t> spoken;  ///< speech tokens, in order, including those that end a group
  std::size_t text_bytes = 0;        ///< bytes of text sent
  std::size_t samples = 0;           ///< samples sent
  std::size_t scores = 0;            ///< tokens of which was sent how likely they were
  std::size_t call_pieces = 0;       ///< pieces of calls sent
};

// ---- commands

/// Creates a duplex session and prefills its prompt. Answered by `opened` or `failed`.
struct open_duplex {
  session_id session = 0;
  std::string system_prompt;
  duplex_options options;
  pcm voice;                         ///< reference voice for the LLM, 16 kHz; null = none
  pcm tts_voice;                     ///< reference voice for the vocoder, 16 kHz; null = the default voice
  std::optional<std::uint64_t> seed; ///< none = `engine.seed`, else random
};

/// Creates a chat session, which holds a slot and nothing else. Answered by `opened`.
struct open_chat {
  session_id session = 0;
  std::optional<std::uint64_t> seed;
  std::optional<rng_state> chance = {}; ///< for a session that continues: `chat_done::after` of its last turn
};

/// What a duplex session hears, sees and reads in one second.
struct unit_input {
  pcm samples; ///< exactly 16 000
  std::vector<image_file> frames;
  int max_slice_nums = 1; ///< limits each frame's grid; 1 = only the overview
  bool force_listen = false;
  std::vector<text_message> context = {}; ///< what the model reads before it hears the unit
};

/// One second of a duplex session. Answered by one or more `step_output`, the last one with `last`, or by `failed`.
///
/// With `replay`, its choices have been made already. A finished unit only takes the session to its state after that
/// unit, and is answered by one `replayed` or `failed`. For an unfinished unit, only what has not been sent is
/// answered, as if the text had just been sent. Replayed units come before all others, in order and without gaps except
/// for failed units, which leave no trace.
struct submit_unit : unit_input {
  session_id session = 0;
  std::uint64_t unit = 0; ///< the caller's number, returned with the answer
  std::shared_ptr<const unit_choices> replay = nullptr;
  /// For a finished replayed unit: skip its sound, because no later unit continues it: this unit, or a replayed one
  /// after it, left no voice open (`unit_choices::voice_open`).
  bool mute = false;
};

/// A chat request. Answered by `chat_delta`s and one `chat_done`, or by `failed`. With `replay` it continues from
/// there: what was sent is not sent again, except in `chat_done`.
struct submit_turn : turn_request {
  session_id session = 0;
  std::uint64_t turn = 0;
  std::shared_ptr<const turn_choices> replay = nullptr;
};

/// Stops the running step at the next token: unsent output is dropped, and the step answers `listen`. No effect between
/// steps.
struct cut {
  session_id session = 0;
};

/// Stops the running chat turn at the next token; it answers `chat_done` with `cancelled`.
struct cancel_turn {
  session_id session = 0;
};

/// Ends a session at the next token boundary and frees everything it held. Answered by `closed`, after which no event
/// follows.
struct close_session {
  session_id session = 0;
};

using command = std::variant<open_duplex, open_chat, submit_unit, submit_turn, cut, cancel_turn, close_session>;

inline bool opens(const command& order) {
  return std::holds_alternative<open_duplex>(order) || std::holds_alternative<open_chat>(order);
}

/// The number in the answer to a command: of a unit or turn, 0 for an open; none = no answer is computed for it.
inline std::optional<std::uint64_t> answer_number(const command& order) {
  if (const auto* unit = std::get_if<submit_unit>(&order)) return unit->unit;
  if (const auto* turn = std::get_if<submit_turn>(&order)) return turn->turn;
  return opens(order) ? std::optional<std::uint64_t>(0) : std::nullopt;
}

// ---- events

/// A session exists and accepts units or turns.
struct opened {
  session_id session = 0;
  int prompt_tokens = 0; ///< length of the KV cache after the prompt
  usage prompt_usage;
  std::uint64_t seed = 0; ///< the one in use
};

/// One delta of a step. Within a step: `listen` alone, or at most one `text` then at most one `audio`. An empty
/// speaking step is one `text` with empty text. A step that is cut after its text was sent ends with a `listen`.
struct step_output {
  session_id session = 0;
  std::uint64_t unit = 0;
  output_kind kind = output_kind::listen;
  std::string text;
  pcm audio;                ///< 24 kHz
  bool first = true;        ///< first delta of its step: `used` holds the step's tokens
  bool last = true;         ///< last delta of its step: `metrics` is complete; otherwise only kv_cache_length is set
  bool end_of_turn = false; ///< on the last delta of a turn's last step
  usage used;
  step_metrics metrics;
  std::shared_ptr<const unit_choices> choices = nullptr; ///< never null
};

/// A piece of a chat answer: text, or sound if `audio` is set.
struct chat_delta {
  session_id session = 0;
  std::uint64_t turn = 0;
  std::string text;
  pcm audio;                              ///< 24 kHz; null in a text delta
  std::vector<std::int64_t> sampled = {}; ///< text tokens chosen since the last delta
  std::vector<std::int64_t> spoken = {};  ///< speech tokens chosen since the last delta
  std::vector<token_score> scores = {};   ///< of the text's tokens, if the turn asks for them
  std::vector<call_piece> calls = {};     ///< in their order
};

/// The end of a turn.
struct chat_done {
  session_id session = 0;
  std::uint64_t turn = 0;
  finish_reason reason = finish_reason::turn_end;
  std::string text; ///< the whole answer, once
  pcm audio;        ///< the whole sound, 24 kHz; null without speech, or if it has been sent in deltas
  usage used;
  step_metrics metrics;
  rng_state after = {};                 ///< for `open_chat::chance` of another engine
  std::vector<tool_call> calls = {};    ///< in their order; their text is not in `text`
  std::vector<token_score> scores = {}; ///< those that no delta had
};

/// An open, a unit or a turn that failed. The session lives on, except after a failed open.
struct failed {
  session_id session = 0;
  std::uint64_t number = 0; ///< of the unit or turn; 0 for an open
  failure_kind kind = failure_kind::inference;
  std::string message;
};

/// The session has reached its state after this unit.
struct replayed {
  session_id session = 0;
  std::uint64_t unit = 0;
};

/// The last event of a session: everything it held is free.
struct closed {
  session_id session = 0;
};

using event = std::variant<opened, step_output, chat_delta, chat_done, failed, replayed, closed>;

/// The session that a command or an event belongs to.
template<class Word>
requires std::same_as<Word, command> || std::same_as<Word, event> session_id session_of(const Word& word) {
  return std::visit([](const auto& of) { return of.session; }, word);
}

/// The same word, for another session.
template<class Word>
requires std::same_as<Word, command> || std::same_as<Word, event> Word addressed(Word word, session_id to) {
  std::visit([to](auto& of) { of.session = to; }, word);
  return word;
}

/// The sound of an event; null if it is of a kind that has none.
template<class Event>
requires std::same_as<std::remove_const_t<Event>, event>
auto sound_of(Event& of) -> decltype(&std::get_if<step_output>(&of)->audio) {
  if (auto* output = std::get_if<step_output>(&of)) return &output->audio;
  if (auto* delta = std::get_if<chat_delta>(&of)) return &delta->audio;
  if (auto* done = std::get_if<chat_done>(&of)) return &done->audio;
  return nullptr;
}

} // namespace parley::conversation
