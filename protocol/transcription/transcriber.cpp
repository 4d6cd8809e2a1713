#include "protocol/transcription/transcriber.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <memory>
#include <string_view>

namespace parley::protocol {
namespace {

constexpr int most_attempts = 5;
constexpr int most_tokens = 256; ///< for 30 s; people say two or three words a second

// The words with which the model was trained to transcribe.
constexpr std::string_view task = "Please listen to the audio snippet carefully and transcribe the content.\n";
constexpr std::string_view chinese_task = "请仔细听这段音频片段，并将其内容逐字记录。\n";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const auto first = text.find_first_not_of(space);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(space) - first + 1);
}

} // namespace

chat_append_event transcription_turn(const transcript_request& what) {
  chat_append_event out;
  auto& asked = out.messages.emplace_back();
  asked.content.emplace_back(text_item{std::string(what.language.starts_with("zh") ? chinese_task : task)});
  asked.content.emplace_back(audio_item{std::make_shared<const std::vector<float>>(to_floats(*what.sound))});
  out.streaming = false;
  out.do_sample = false;
  out.max_new_tokens = most_tokens;
  return out;
}

chat_append_event judging_turn(const transcript_request& what) {
  PARLEY_ASSERT(what.offer, "what is judged has an offer");
  chat_append_event out;
  static_cast<conversation::turn_request&>(out) = *what.offer;
  out.names_tools = true;
  auto& asked = out.messages.emplace_back();
  asked.content.emplace_back(audio_item{std::make_shared<const std::vector<float>>(to_floats(*what.sound))});
  out.streaming = false;
  out.do_sample = false;
  out.max_new_tokens = most_tokens;
  return out;
}

transcriber::effects transcriber::want(transcript_request what, time_point now) {
  now_ = now;
  if (!what.sound || what.sound->size() > most_transcribed_samples) {
    out_.emplace_back(transcript{what.number, transcript_result::too_long});
  } else if (jobs_.size() > terms_.most_waiting) {
    out_.emplace_back(transcript{what.number, transcript_result::busy});
  } else {
    const auto patience = what.offer ? terms_.judged_within : terms_.patience;
    jobs_.push_back({std::move(what), now + patience});
    if (!opens_at_) begin_next();
  }
  return take();
}

void transcriber::begin_next() {
  opens_at_.reset();
  if (session_.is_open() || jobs_.empty()) return;
  if (!terms_.sessions.take(1, now_)) {
    opens_at_ = terms_.sessions.when(1, now_);
    return;
  }
  ++jobs_.front().attempts;
  jobs_.front().calls.clear();
  session_.open(mode::chat, {});
}

transcriber::effects transcriber::on_event(std::uint64_t number, const server_event& event) {
  if (session_.heeds(number)) std::visit([this](const auto& each) { heed(each); }, event);
  return take();
}

void transcriber::heed(const session_created&) {
  if (!session_.begin()) return;
  const auto& what = jobs_.front().what;
  session_.say(what.offer ? judging_turn(what) : transcription_turn(what));
}

void transcriber::heed(const response_tool_call& event) {
  auto& calls = jobs_.front().calls;
  if (jobs_.front().what.offer && calls.size() < most_turn_calls) calls.push_back(event.call);
}

void transcriber::heed(const response_done& event) {
  if (event.reason == "cancelled") return; // its session is about to close
  const bool well = event.reason == "turn_end" || event.reason == "length";
  answer(well ? transcript_result::completed : transcript_result::failed, std::string(trimmed(event.text)),
         jobs_.front().what.offer ? event.used.value_or(usage()) : usage());
}

void transcriber::heed(const error_event&) {
  answer(session_.ready() ? transcript_result::failed : transcript_result::busy);
}

void transcriber::heed(const session_closed&) {
  lose_session();
}

transcriber::effects transcriber::on_closed(std::uint64_t number) {
  if (session_.heeds(number)) lose_session();
  return take();
}

/// Somebody else wanted its slot, or its worker is gone.
void transcriber::lose_session() {
  session_.close();
  if (jobs_.front().attempts >= most_attempts) answer(transcript_result::busy);
  begin_next();
}

void transcriber::answer(transcript_result how, std::string text, const usage& used) {
  auto& [done, until, attempts, calls] = jobs_.front();
  if (how != transcript_result::completed) calls.clear();
  out_.emplace_back(transcript{done.number, how, std::move(text), static_cast<double>(done.sound->size()) / 16'000,
                               std::move(calls), used});
  jobs_.pop_front();
  session_.close();
  begin_next();
}

transcriber::effects transcriber::tick(time_point now) {
  now_ = now;
  // Those behind the first may have less patience.
  for (std::size_t at = 1; at < jobs_.size();) {
    if (now < jobs_[at].until) {
      ++at;
      continue;
    }
    out_.emplace_back(transcript{jobs_[at].what.number, transcript_result::busy});
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  while (!jobs_.empty() && now >= jobs_.front().until) answer(transcript_result::busy);
  if (opens_at_ && now >= *opens_at_) begin_next();
  return take();
}

std::optional<time_point> transcriber::next_deadline() const {
  if (jobs_.empty()) return std::nullopt;
  auto first = std::min_element(jobs_.begin(), jobs_.end(), [](const auto& a, const auto& b) {
                 return a.until < b.until;
               })->until;
  return std::min(first, opens_at_.value_or(first));
}

transcriber::effects transcriber::give_up() {
  session_.close();
  for (const auto& each : jobs_) out_.emplace_back(transcript{each.what.number, transcript_result::failed});
  jobs_.clear();
  return take();
}

} // namespace parley::protocol
