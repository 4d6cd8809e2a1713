#include "actors/durable/log_record.hpp"

#include "actors/cluster/byte_archive.hpp"
#include "actors/cluster/unit_codec.hpp"
#include "actors/durable/compact_frame.hpp"
#include "actors/session/compact_pcm.hpp"

#include <limits>
#include <utility>

// Structs are destructured completely, so that a new member does not compile until it is handled here. Then
// `log_version` must change.
namespace parley::protocol {

template<class A>
static void milliseconds(A& a, session_limits::milliseconds& of) {
  auto count = static_cast<std::int64_t>(of.count());
  a(count);
  of = session_limits::milliseconds(count);
}

template<class A>
static void fields(A& a, session_limits& of) {
  auto& [audio, video, chat, idle, turn, init, failover, drain, resume, backlog, failover_units, legacy, context, unit,
         window, choose, done] = of;
  for (auto* each : {&audio, &video, &chat, &idle, &turn, &init, &failover, &drain, &resume}) milliseconds(a, *each);
  a(backlog, failover_units, legacy, context, unit, window, choose, done);
}

template<class A>
static void fields(A& a, capabilities& of) {
  auto& [hears, sees, speaks] = of;
  a(hears, sees, speaks);
}

} // namespace parley::protocol

namespace parley::actors {

namespace logged {

template<class A>
static void fields(A& a, beginning& of) {
  auto& [accepted, mode, id, legacy, recording, remote, group, key, seed, limits, able] = of;
  a(accepted, mode, id, legacy, recording, remote, group, key, seed, limits, able);
}

static void fields(byte_writer& a, frame& of) {
  const auto bytes = compact_frame(of.text ? std::string_view(*of.text) : std::string_view());
  a(bytes);
}

static void fields(byte_reader& a, frame& of) {
  std::string bytes;
  a(bytes);
  auto text = expand_frame(bytes);
  if (!text) return a.fail();
  of.text = std::make_shared<const std::string>(*std::move(text));
}

/// The sound of an event; null if there is no room for any.
static inference::pcm* sound_of(inference::event& event) {
  if (auto* output = std::get_if<inference::step_output>(&event)) return &output->audio;
  if (auto* delta = std::get_if<inference::chat_delta>(&event)) return &delta->audio;
  if (auto* done = std::get_if<inference::chat_done>(&event)) return &done->audio;
  return nullptr;
}

/// The sound is kept apart, where its samples are 16-bit numbers as such.
static void fields(byte_writer& a, engine_word& of) {
  auto silent = of.event;
  compact_pcm sound;
  if (auto* samples = sound_of(silent)) sound = compact_pcm(std::exchange(*samples, nullptr));
  const auto bytes = pack(silent);
  a(bytes, sound);
}

static void fields(byte_reader& a, engine_word& of) {
  std::string bytes;
  compact_pcm sound;
  a(bytes, sound);
  if (!unpack(bytes, of.event)) return a.fail();
  if (auto* samples = sound_of(of.event)) *samples = sound.samples();
}

template<class A>
static void fields(A& a, worker_news& of) {
  a(of.what);
}

template<class A>
static void fields(A&, tick&) {}

template<class A>
static void fields(A&, drain&) {}

template<class A>
static void fields(A& a, tokens& of) {
  auto& [newest, used] = of;
  a(newest, used);
}

template<class A>
static void fields(A& a, resumed& of) {
  a(of.valid);
}

template<class A>
static void fields(A& a, handed_over& of) {
  a(of.back_after_ms);
}

template<class A>
static void fields(A&, taken_up&) {}

template<class A>
static void fields(A& a, user_turn& of) {
  auto& [number, result, text, seconds] = of.heard;
  a(number, result, text, seconds);
}

} // namespace logged

std::string pack(const timed_record& record) {
  byte_writer out;
  const auto at = static_cast<std::int64_t>(record.at.count());
  out(at, record.what);
  return out.take();
}

std::chrono::nanoseconds time_of(std::string_view packed) {
  std::int64_t at = 0;
  byte_reader in(packed);
  in(at);
  return std::chrono::nanoseconds(in.good() ? at : 0);
}

std::size_t index_of(std::string_view packed) {
  std::int64_t at = 0;
  std::uint8_t index = 0;
  byte_reader in(packed);
  in(at, index);
  return in.good() ? index : std::variant_size_v<log_record>;
}

namespace {

/// Times of a few days at most, and numbers within the bounds of their settings, so that no sum overflows.
bool plausible(const timed_record& record) {
  constexpr std::chrono::hours long_ago{24 * 30};
  if (record.at < -long_ago || record.at > long_ago) return false;
  const auto* begin = std::get_if<logged::beginning>(&record.what);
  if (!begin) return true;
  const auto& of = begin->limits;
  for (const auto limit :
       {of.audio, of.video, of.chat, of.chat_idle, of.chat_turn, of.init, of.failover, of.drain, of.resume})
    if (limit < limit.zero() || limit > long_ago) return false;
  constexpr int many = 1 << 20;
  for (const auto count : {of.context_tokens, of.unit.rows, of.unit.rows_per_picture})
    if (count < 0 || count > many) return false;
  return begin->accepted_ns >= 0 && begin->accepted_ns < std::numeric_limits<std::int64_t>::max() / 2;
}

} // namespace

std::optional<timed_record> unpack_record(std::string_view bytes) {
  byte_reader in(bytes);
  std::int64_t at = 0;
  timed_record record;
  in(at, record.what);
  if (!in.complete()) return std::nullopt;
  record.at = std::chrono::nanoseconds(at);
  if (!plausible(record)) return std::nullopt;
  return record;
}

} // namespace parley::actors
