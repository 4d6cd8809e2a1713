#include "actors/bytes/unit_codec.hpp"

#include "actors/bytes/byte_archive.hpp"
#include "actors/bytes/compact_pcm.hpp"
#include "actors/bytes/unit_bounds.hpp"
#include "actors/capacity/engine_counters.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"

#include <algorithm>

// Structs are destructured completely, so that a new member does not compile until it is handled here; engine_capacity
// has an assertion for that.
namespace parley::conversation {

/// A client's sound, in half the bytes if nothing is lost: most sound was 16-bit samples originally.
static void sound(actors::byte_writer& a, const pcm& samples) {
  actors::compact_pcm kept(samples);
  a(kept);
}

static void sound(actors::byte_reader& a, pcm& samples) {
  actors::compact_pcm kept;
  a(kept);
  samples = kept.samples();
}

template<class A>
static void fields(A& a, text_item& of) {
  auto& [text] = of;
  a(text);
}

template<class A>
static void fields(A& a, audio_item& of) {
  auto& [samples] = of;
  sound(a, samples);
}

template<class A>
static void fields(A& a, image_item& of) {
  auto& [file] = of;
  a(file);
}

template<class A>
static void fields(A& a, video_item& of) {
  auto& [frames, samples, stack] = of;
  sound(a, samples);
  a(frames, stack);
}

template<class A>
static void fields(A& a, message& of) {
  auto& [from, content, calls] = of;
  a(from, content, calls);
}

template<class A>
static void fields(A& a, step_metrics& of) {
  auto& [kv, prefill, generate, llm, tts, token2wav, tokens, tts_tokens, slices, vision, windows] = of;
  a(kv, prefill, generate, llm, tts, token2wav, tokens, tts_tokens, slices, vision, windows);
}

template<class A>
static void fields(A& a, rng_state& of) {
  auto& [text, speech, noise] = of;
  a(text, speech, noise);
}

template<class A>
static void fields(A& a, unit_choices& of) {
  auto& [finished, forced, cut, sampled, remembered, spoken, owed, open, after] = of;
  a(finished, forced, cut, sampled, remembered, spoken, owed, open, after);
}

template<class A>
static void fields(A& a, turn_choices& of) {
  auto& [sampled, spoken, text_bytes, samples, scores, calls] = of;
  a(sampled, spoken, text_bytes, samples, scores, calls);
}

template<class A>
static void fields(A& a, open_duplex& of) {
  auto& [session, prompt, options, voice, tts_voice, seed] = of;
  a(session, prompt, options, voice, tts_voice, seed);
}

template<class A>
static void fields(A& a, open_chat& of) {
  auto& [session, seed, chance] = of;
  a(session, seed, chance);
}

template<class A>
static void fields(A& a, submit_unit& of) {
  auto& [samples, frames, slices, force, context] = static_cast<unit_input&>(of);
  sound(a, samples);
  a(of.session, of.unit, frames, slices, force, of.replay, of.mute, context);
}

template<class A>
static void fields(A& a, submit_turn& of) {
  turn_request& request = of;
  a(request, of.session, of.turn, of.replay);
}

template<class A>
static void fields(A& a, cut& of) {
  auto& [session] = of;
  a(session);
}

template<class A>
static void fields(A& a, cancel_turn& of) {
  auto& [session] = of;
  a(session);
}

template<class A>
static void fields(A& a, close_session& of) {
  auto& [session] = of;
  a(session);
}

template<class A>
static void fields(A& a, opened& of) {
  auto& [session, tokens, used, seed] = of;
  a(session, tokens, used, seed);
}

template<class A>
static void fields(A& a, step_output& of) {
  auto& [session, unit, kind, text, audio, first, last, end, used, metrics, choices] = of;
  a(session, unit, kind, text, audio, first, last, end, used, metrics, choices);
}

template<class A>
static void fields(A& a, chat_delta& of) {
  auto& [session, turn, text, audio, sampled, spoken, scores, calls] = of;
  a(session, turn, text, audio, sampled, spoken, scores, calls);
}

template<class A>
static void fields(A& a, chat_done& of) {
  auto& [session, turn, reason, text, audio, used, metrics, after, calls, scores] = of;
  a(session, turn, reason, text, audio, used, metrics, after, calls, scores);
}

template<class A>
static void fields(A& a, failed& of) {
  auto& [session, number, kind, words] = of;
  a(session, number, kind, words);
}

template<class A>
static void fields(A& a, replayed& of) {
  auto& [session, unit] = of;
  a(session, unit);
}

template<class A>
static void fields(A& a, closed& of) {
  auto& [session] = of;
  a(session);
}

} // namespace parley::conversation

namespace parley::inference {

template<class A>
static void fields(A& a, engine_info& of) {
  auto& [model, fingerprint, device, slots, context, hears, sees, speaks, unit] = of;
  a(model, fingerprint, device, slots, context, hears, sees, speaks, unit);
}

template<class A>
static void fields(A& a, engine_capacity& of) {
  a(of.kv_pages, of.kv_pages_free);
  for (const auto& counter : actors::engine_counters) a(of.*counter.value);
  a(of.slots);
}

} // namespace parley::inference

namespace parley::actors {

template<class A>
static void fields(A& a, worker_capacity& of) {
  auto& [engine, busy, prompts] = of;
  a(engine, busy, prompts);
}

namespace {

template<class T>
std::string write(const T& value) {
  byte_writer out;
  out(value);
  return out.take();
}

template<class T>
bool read(std::string_view bytes, T& value) {
  byte_reader in(bytes);
  in(value);
  return in.complete();
}

/// Whether the event begins with a session and a number (unit_codec's `fields`).
bool is_numbered(std::size_t index) {
  const auto is = [index](auto sample) { return index == conversation::event(std::move(sample)).index(); };
  return is(conversation::step_output{}) || is(conversation::chat_delta{}) || is(conversation::chat_done{}) ||
         is(conversation::failed{}) || is(conversation::replayed{});
}

} // namespace

std::string pack(const conversation::command& order) {
  return write(order);
}
std::string pack(const conversation::event& event) {
  return write(event);
}
std::string pack(const inference::engine_info& info) {
  return write(info);
}
std::string pack(const worker_capacity& load) {
  return write(load);
}
bool unpack(std::string_view bytes, conversation::command& order) {
  return read(bytes, order) && plausible(order);
}

bool unpack(std::string_view bytes, conversation::event& event) {
  if (!read(bytes, event)) return false;
  if (auto* failed = std::get_if<conversation::failed>(&event)) {
    failed->message.resize(std::min(failed->message.size(), most_words_bytes));
    failed->message = base::utf8::truncate(base::utf8::lossy(failed->message), most_words_bytes);
  }
  return plausible(event);
}

bool unpack(std::string_view bytes, inference::engine_info& info) {
  if (!read(bytes, info)) return false;
  for (auto* words : {&info.model, &info.fingerprint, &info.device}) *words = base::printable(*words);
  return plausible(info);
}

bool unpack(std::string_view bytes, worker_capacity& load) {
  return read(bytes, load) && plausible(load);
}

std::optional<conversation::event> failure_instead(std::string_view bytes) {
  byte_reader in(bytes);
  std::uint8_t index = 0;
  conversation::failed failed{};
  in(index, failed.session);
  if (is_numbered(index)) in(failed.number);
  if (!in.good() || index >= std::variant_size_v<conversation::event>) return std::nullopt;
  failed.message = "the worker's answer makes no sense";
  return failed;
}

} // namespace parley::actors
