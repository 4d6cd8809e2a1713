#include "protocol/transcription/transcriber.hpp"

#include "protocol/codec/client_side.hpp"
#include "protocol/codec/server_glance.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/media/pcm.hpp"

#include <algorithm>

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

std::string encode_transcription_turn(const transcript_request& what) {
  std::string out = R"({"type":"input.append","input":{"messages":[{"role":"user","content":[{"type":"text","text":)";
  json::append_string(what.language.starts_with("zh") ? chinese_task : task, out);
  out += R"(},{"type":"audio","data":")";
  append_samples(to_floats(*what.sound), out);
  out += R"("}]}],"streaming":false,"generation":{"do_sample":false,"max_new_tokens":)" + std::to_string(most_tokens);
  return out + "}}}";
}

transcriber::effects transcriber::want(transcript_request what, time_point now) {
  now_ = now;
  if (!what.sound || what.sound->size() > most_transcribed_samples) {
    out_.emplace_back(transcript{what.number, transcript_result::too_long});
  } else if (jobs_.size() > terms_.most_waiting) {
    out_.emplace_back(transcript{what.number, transcript_result::busy});
  } else {
    jobs_.push_back({std::move(what), now + terms_.patience});
    if (!opens_at_) begin_next();
  }
  return take();
}

void transcriber::begin_next() {
  opens_at_.reset();
  if (open_ || jobs_.empty()) return;
  if (!terms_.sessions.take(1, now_)) {
    opens_at_ = terms_.sessions.when(1, now_);
    return;
  }
  ++jobs_.front().attempts;
  open_ = true;
  begun_ = false;
  out_.emplace_back(open_session{++number_});
  out_.emplace_back(to_session{number_, R"({"type":"session.init","payload":{}})"});
}

transcriber::effects transcriber::on_frame(std::uint64_t number, std::string_view frame) {
  if (!open_ || number != number_) return {};
  auto said = read_server_message(frame);
  if (!said) return {};
  switch (said->type) {
  case server_event_type::created:
    if (std::exchange(begun_, true)) break;
    out_.emplace_back(to_session{number_, encode_transcription_turn(jobs_.front().what)});
    break;
  case server_event_type::response_done: {
    if (said->reason == "cancelled") break; // its session is about to close
    const bool well = said->reason == "turn_end" || said->reason == "length";
    answer(well ? transcript_result::completed : transcript_result::failed, std::string(trimmed(said->text)));
    break;
  }
  case server_event_type::error:
    if (begun_)
      answer(transcript_result::failed);
    else
      answer(transcript_result::busy);
    break;
  case server_event_type::closed: lose_session(); break;
  default: break;
  }
  return take();
}

transcriber::effects transcriber::on_closed(std::uint64_t number) {
  if (open_ && number == number_) lose_session();
  return take();
}

/// Somebody else wanted its slot, or its worker is gone.
void transcriber::lose_session() {
  close();
  if (jobs_.front().attempts >= most_attempts) answer(transcript_result::busy);
  begin_next();
}

void transcriber::answer(transcript_result how, std::string text) {
  const auto& done = jobs_.front().what;
  out_.emplace_back(transcript{done.number, how, std::move(text), static_cast<double>(done.sound->size()) / 16'000});
  jobs_.pop_front();
  close();
  begin_next();
}

void transcriber::close() {
  if (!std::exchange(open_, false)) return;
  out_.emplace_back(to_session{number_, encode_close("user_stop")});
  out_.emplace_back(drop_session{number_});
}

transcriber::effects transcriber::tick(time_point now) {
  now_ = now;
  while (!jobs_.empty() && now >= jobs_.front().until) answer(transcript_result::busy);
  if (opens_at_ && now >= *opens_at_) begin_next();
  return take();
}

std::optional<transcriber::time_point> transcriber::next_deadline() const {
  if (jobs_.empty()) return std::nullopt;
  return std::min(jobs_.front().until, opens_at_.value_or(jobs_.front().until));
}

transcriber::effects transcriber::give_up() {
  close();
  for (const auto& each : jobs_) out_.emplace_back(transcript{each.what.number, transcript_result::failed});
  jobs_.clear();
  return take();
}

} // namespace parley::protocol
