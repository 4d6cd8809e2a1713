#include "inference/engine/omni_engine.hpp"
#include "inference/log.hpp"

#include <new>
#include <utility>

// What one session causes ends that session at most: nothing here throws, and a session stays where it is until the pass
// is over.
namespace parley::inference {

namespace {

void log_quietly(const char* what, const char* why) noexcept {
  try {
    log_info(std::string(what) + why);
  } catch (...) { // there is no memory for it
  }
}

} // namespace

void omni_engine::refuse(session_id id, std::uint64_t number, failure kind, const char* message) noexcept {
  try {
    try {
      out_(failed{id, number, kind, message});
    } catch (const std::bad_alloc&) {
      out_(failed{id, number, kind, {}}); // no memory even for the words
    }
  } catch (...) {
    log_quietly("engine: a failure could not be told: ", words_of_exception().text);
  }
}

/// What the session was doing came to nothing; it is as before and goes on, unless it was not open yet.
void omni_engine::fail(session& s, failure kind, const char* message) noexcept {
  if (s.over) return;
  const bool answers = (s.duplex && s.duplex->unit) || (s.chat && s.chat->turn);
  if (!answers) return give_up(s, kind, message);
  auto number = std::uint64_t{0};
  try {
    number = take_back(s);
  } catch (...) {
    log_quietly("engine: a session can't be taken back: ", words_of_exception().text);
    return give_up(s, kind, message);
  }
  refuse(s.id, number, kind, message);
  next_job(s);
}

/// To where the session stood before its unit or turn. Returns the number of that.
std::uint64_t omni_engine::take_back(session& s) {
  s.rows.reset();
  s.kept_rows.clear();
  s.hearing.reset();
  s.clips.clear();
  forget_pictures(s);
  s.at = s.speech_at = stage::idle;
  if (voices_ && std::exchange(s.voice_awaited, false)) voices_->forget(s.id);
  if (s.chat) {
    const auto number = s.chat->turn->turn;
    s.go_on_from(s.chat->before);
    forget_turn(s);
    return number;
  }
  auto& d = *s.duplex;
  const auto number = d.unit->unit;
  if (d.before) {
    auto& before = *d.before;
    if (before.speech) d.speech->restore(std::move(*before.speech));
    s.go_on_from(before.chance);
    s.cache.truncate(before.cache_length);
    d.encoder.length = before.encoder_length;
    d.stream = std::move(before.stream);
    d.intake = std::move(before.intake);
    d.decoder = std::move(before.decoder);
    d.history.resize(before.history);
    d.tail = std::move(before.tail);
    d.before.reset();
  }
  d.sound.reset();
  d.reply.clear();
  d.told.reset();
  d.unit.reset();
  return number;
}

/// The session ends here: it was not open yet, or can't be taken back to where it stood. What it was asked is refused.
void omni_engine::give_up(session& s, failure kind, const char* message) noexcept {
  s.over = true;
  s.at = s.speech_at = stage::idle;
  s.voice_awaited = false;
  if (s.duplex && s.duplex->unit)
    refuse(s.id, s.duplex->unit->unit, kind, message);
  else if (s.chat && s.chat->turn)
    refuse(s.id, s.chat->turn->turn, kind, message);
  else
    refuse(s.id, 0, kind, message);
  for (const auto& waiting : s.units) refuse(s.id, waiting.order.unit, kind, message);
  for (const auto& waiting : s.turns) refuse(s.id, waiting.order.turn, kind, message);
}

void omni_engine::end(session_id id) noexcept {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  if (voices_) voices_->forget(id);
  if (auto& duplex = found->second->duplex) {
    try {
      spare_encoders_.push_back(std::move(duplex->encoder));
    } catch (...) { // the next session gets a new one
    }
  }
  sessions_.erase(found);
  trace_.forget(id);
}

/// Sessions that are over go when nobody works with them any more.
void omni_engine::bury() noexcept {
  for (auto next = sessions_.begin(); next != sessions_.end();) {
    const auto& s = *(next++)->second;
    if (s.over) end(s.id);
  }
}

} // namespace parley::inference
