#include "actors/log/log_record.hpp"

#include "actors/bytes/byte_archive.hpp"
#include "actors/bytes/compact_frame.hpp"
#include "actors/bytes/compact_pcm.hpp"
#include "actors/bytes/unit_bounds.hpp"
#include "actors/bytes/unit_codec.hpp"
#include "base/printable.hpp"
#include "base/utf8.hpp"
#include "protocol/ids.hpp"

#include <iterator>
#include <limits>
#include <utility>

// Structs are destructured completely, so that a new member does not compile until it is handled here. Then
// `log_version` must change.
namespace parley::actors {

template<>
inline constexpr std::size_t enum_values<logged::worker_change> = 3;
template<>
inline constexpr std::size_t enum_values<protocol::transcript_result> = std::size(protocol::transcript_result_words);

} // namespace parley::actors

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
         window, choose, done, functions, delegations, delegation, transcribes] = of;
  for (auto* each : {&audio, &video, &chat, &idle, &turn, &init, &failover, &drain, &resume}) milliseconds(a, *each);
  a(backlog, failover_units, legacy, context, unit, window, choose, done);
}

/// What version 5 adds, at the end of its record.
template<class A>
static void added_fields(A& a, session_limits& of) {
  milliseconds(a, of.delegation);
  a(of.delegations, of.transcribes);
}

template<class A>
static void fields(A& a, capabilities& of) {
  auto& [hears, sees, speaks] = of;
  a(hears, sees, speaks);
}

} // namespace parley::protocol

namespace parley::actors {

namespace logged {

// A record of version 4 ends where what version 5 adds begins. What a session of version 4 can have is written as it was then.
static bool goes_on(byte_writer&, bool has_more) {
  return has_more;
}
static bool goes_on(byte_reader& a, bool& has_more) {
  return has_more = a.good() && !a.complete();
}

template<class A>
static void fields(A& a, beginning& of) {
  auto& [accepted, mode, id, legacy, recording, remote, group, key, seed, limits, able] = of;
  a(accepted, mode, id, legacy, recording, remote, group, key, seed, limits, able);
  if (goes_on(a, limits.knows_functions)) added_fields(a, limits);
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
  auto& [number, result, text, seconds, calls, used] = of.heard;
  a(number, result, text, seconds);
  bool judged = !calls.empty() || used != conversation::usage();
  if (goes_on(a, judged)) a(calls, used);
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

constexpr std::chrono::hours long_time{24 * 30};
constexpr std::size_t longest_name = 1024;
constexpr double longest_turn_s = 1e6;

bool is_name(const std::string& text) {
  return base::printable(text, longest_name) == text;
}

/// An id that may become a file's name, or is absent.
bool is_id(const std::string& id) {
  return id.empty() || protocol::is_session_id(id, longest_name);
}

struct record_check {
  bool operator()(const logged::beginning& of) const {
    const auto& limits = of.limits;
    for (const auto limit : {limits.audio, limits.video, limits.chat, limits.chat_idle, limits.chat_turn, limits.init,
                             limits.failover, limits.drain, limits.resume, limits.delegation})
      if (limit < limit.zero() || limit > long_time) return false;
    constexpr int many = 1 << 20;
    for (const auto count : {limits.context_tokens, limits.unit.rows, limits.unit.rows_per_picture})
      if (count < 0 || count > many) return false;
    for (const auto count :
         {limits.backlog_units, limits.failover_units, limits.min_legacy_samples, limits.delegations})
      if (count > many) return false;
    return protocol::is_session_id(of.session_id) && is_id(of.legacy_id) && is_id(of.recording_id) &&
           is_name(of.mode) && is_name(of.remote) && is_name(of.group) && is_name(of.key) && of.accepted_ns >= 0 &&
           of.accepted_ns < std::numeric_limits<std::int64_t>::max() / 2;
  }
  bool operator()(const logged::engine_word& of) const { return plausible(of.event); }
  bool operator()(const logged::handed_over& of) const {
    return of.back_after_ms >= 0 && std::chrono::milliseconds(of.back_after_ms) <= long_time;
  }
  bool operator()(const logged::user_turn& of) const {
    return base::utf8::valid(of.heard.text) && of.heard.seconds >= 0 && of.heard.seconds <= longest_turn_s &&
           of.heard.calls.size() <= protocol::most_turn_calls;
  }
  bool operator()(const auto&) const { return true; } // their members' types have no values that make no sense
};

/// Times of a few days at most, and numbers within the bounds of their settings, so that no sum overflows; ids that lead to
/// files of the folder only.
bool plausible(const timed_record& record) {
  return record.at >= -long_time && record.at <= long_time && std::visit(record_check{}, record.what);
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
