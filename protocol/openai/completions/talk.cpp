#include "protocol/openai/completions/talk.hpp"

#include "base/wav.hpp"
#include "protocol/codec/server_codec.hpp"
#include "protocol/guest/heard.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/wav.hpp"
#include "protocol/openai/completions/completion_turn.hpp"
#include "protocol/openai/completions/spoken_id.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace parley::protocol {
namespace {

constexpr std::uint32_t output_rate = 24'000;
constexpr std::int64_t spoken_id_seconds = 24 * 3600; ///< how long it is said to be valid; it is for longer

/// Base64 of PCM16, with a WAV header if requested.
std::string to_pcm16(const pcm& sound, sound_format as) {
  std::string out;
  const std::string wav = write_wav(guest::samples_in(sound), output_rate);
  const auto bytes = std::string_view(wav).substr(as == sound_format::wav ? 0 : base::wav_header_bytes);
  base64::append(std::as_bytes(std::span(bytes)), out);
  return out;
}

std::string_view finish_of(std::string_view reason) {
  return reason == "length" ? "length" : "stop";
}

/// An element of `tool_calls`; with its index in a chunk.
void append_call(const conversation::tool_call& call, std::optional<std::size_t> index, std::string& to) {
  json::object_writer write(to);
  if (index) write.integer("index", static_cast<std::int64_t>(*index));
  write.text("id", call.id);
  write.text("type", "function");
  auto function = write.object("function");
  function.text("name", call.name);
  function.text("arguments", call.arguments);
  function.close();
  write.close();
}

std::string encode_logprobs(std::string_view scores) {
  return R"({"content":)" + (scores.empty() ? std::string("[]") : std::string(scores)) + R"(,"refusal":null})";
}

std::string as_event(std::string_view data) {
  return std::string("data: ").append(data).append("\n\n");
}

} // namespace

std::string encode_openai_error(const openai_fault& fault) {
  std::string out;
  json::object_writer write(out);
  auto error = write.object("error");
  error.text("message", fault.message);
  error.text("type", fault.code == out_of_quota ? out_of_quota
                     : fault.status == 429      ? "rate_limit_error"
                     : fault.status >= 500      ? "server_error"
                                                : "invalid_request_error");
  fault.param.empty() ? error.json("param", "null") : error.text("param", fault.param);
  error.text("code", fault.code);
  error.close();
  write.close();
  return out;
}

namespace {

/// The field that an error of the session is about, as the request has it; empty if the message names none. What only the
/// session knows is taken from the message.
std::string take_param(std::string& message) {
  auto path = std::string_view(message).substr(0, message.find(": "));
  if (path.size() == message.size() || path.empty()) return {};
  const bool is_path = std::all_of(path.begin(), path.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '[' || c == ']' || c == '$' || c == '-';
  });
  if (!is_path) return {};
  const auto size = path.size();
  for (const std::string_view outer : {"input.", "generation."})
    if (path.starts_with(outer)) path.remove_prefix(outer.size());
  std::string param(path);
  message.erase(0, size - param.size());
  return param;
}

} // namespace

openai_fault openai_fault_of(std::string_view wire_code, std::string message) {
  if (wire_code == traits(error_code::quota_exceeded).wire)
    return {429, std::string(out_of_quota), std::move(message), {}};
  unsigned status = 400;
  if (wire_code == "queue_full" || wire_code == "worker_busy") status = 429;
  if (wire_code == "service_unavailable" || wire_code == "worker_connect_failed") status = 503;
  if (wire_code == "inference_error") status = 500;
  auto param = status == 400 ? take_param(message) : std::string();
  return {status, std::string(wire_code), std::move(message), std::move(param)};
}

openai_talk::openai_talk(openai_request request, std::int64_t created_s)
    : request_(std::move(request)), created_s_(created_s) {}

openai_talk::effects openai_talk::begin() {
  session_.open(mode::chat, {});
  return take();
}

openai_talk::effects openai_talk::on_event(const server_event& event) {
  if (session_.is_open()) std::visit([this](const auto& each) { heed(each); }, event);
  return take();
}

openai_talk::effects openai_talk::on_closed(const std::string& why) {
  if (session_.is_open()) fail({503, "service_unavailable", "the session ended: " + why});
  return take();
}

void openai_talk::reply(std::string text, bool over) {
  if (!text.empty()) out_.emplace_back(openai_reply{std::move(text), over, {}});
}

/// Nothing of the session matters after it.
void openai_talk::fail(openai_fault why) {
  asked_.reset();
  session_.close();
  out_.emplace_back(openai_reply{{}, true, std::move(why)});
}

void openai_talk::heed(const session_created& event) {
  if (!session_.begin()) return;
  constexpr std::string_view prefix = "sess_";
  const std::string_view session = event.session_id;
  id_ = std::string("chatcmpl-").append(session.substr(session.starts_with(prefix) ? prefix.size() : 0));
  ask_next();
}

/// Asks for the current choice.
void openai_talk::ask_next() {
  asked_ = std::make_shared<const completion_turn>(request_.prompt, choice_);
  if (choice_ + 1 == request_.choices) request_.prompt.reset();
  session_.ask(asked_);
}

void openai_talk::heed(const error_event& event) {
  fail(openai_fault_of(traits(event.code).wire, event.message));
}

void openai_talk::heed(const session_closed& event) {
  fail({503, event.reason, "the session ended before its answer"});
}

/// A choice is complete; the next one is a turn of its own.
void openai_talk::heed(const response_done& event) {
  if (!session_.ready()) return; // nothing has been asked
  asked_.reset();
  auto finish = finish_of(event.reason);
  if (finish == "stop" && !calls_.empty()) finish = "tool_calls";
  const auto used = event.used.value_or(usage{});
  used_.input_text = used.input_text;
  used_.input_audio = used.input_audio;
  used_.input_vision = used.input_vision;
  used_.output_text += used.output_text;
  used_.output_audio += used.output_audio;
  const auto scores = encode_scores(event.scores);

  std::string told;
  if (request_.streaming) {
    if (!began_) told = chunk(R"({"role":"assistant","content":""})", {});
    if (!spoken_.empty()) told += chunk(last_of_sound(), {});
    told += chunk("{}", finish, scores);
  } else {
    choices_ += choices_.empty() ? "" : ",";
    choices_ += R"({"index":)" + std::to_string(choice_) + R"(,"message":)";
    append_message(event);
    choices_ += R"(,"logprobs":)" + (request_.scored ? encode_logprobs(scores) : "null");
    choices_ += R"(,"finish_reason":")" + std::string(finish) + "\"}";
  }
  if (++choice_ < request_.choices) {
    began_ = false;
    calls_.clear();
    ask_next();
    return reply(std::move(told));
  }
  session_.close();
  if (!request_.streaming)
    return reply(head("chat.completion") + R"(,"choices":[)" + choices_ + R"(],"usage":)" + encode_usage() + "}", true);
  if (request_.include_usage) told += as_event(chunk_head() + R"(,"choices":[],"usage":)" + encode_usage() + "}");
  reply(told + as_event("[DONE]"), true);
}

/// The message of a choice that is not streamed.
void openai_talk::append_message(const response_done& done) {
  choices_ += R"({"role":"assistant","refusal":null,"content":)";
  if (request_.sound != sound_format::none && done.audio) {
    choices_ += R"(null,"audio":)";
    json::object_writer sound(choices_);
    sound.text("id", spoken_id(name(), done.text));
    sound.integer("expires_at", created_s_ + spoken_id_seconds);
    sound.text("data", to_pcm16(clamped(done.audio), request_.sound));
    sound.text("transcript", done.text);
    sound.close();
  } else if (done.text.empty() && !calls_.empty()) {
    choices_ += "null";
  } else {
    json::append_string(done.text, choices_);
  }
  if (!calls_.empty()) {
    choices_ += R"(,"tool_calls":[)";
    for (const auto& call : calls_) {
      if (&call != &calls_.front()) choices_ += ',';
      append_call(call, std::nullopt, choices_);
    }
    choices_ += ']';
  }
  choices_ += '}';
}

/// In the OpenAI API's words.
std::string openai_talk::encode_usage() const {
  std::string out;
  json::object_writer write(out);
  const auto input = used_.input_text + used_.input_audio + used_.input_vision;
  const auto output = used_.output_text + used_.output_audio;
  write.integer("prompt_tokens", input);
  write.integer("completion_tokens", output);
  write.integer("total_tokens", input + output);
  auto prompt = write.object("prompt_tokens_details");
  prompt.integer("audio_tokens", used_.input_audio);
  prompt.integer("cached_tokens", 0);
  prompt.close();
  auto completion = write.object("completion_tokens_details");
  completion.integer("audio_tokens", used_.output_audio);
  completion.integer("reasoning_tokens", 0);
  completion.close();
  write.close();
  return out;
}

/// What has come in parts needs no more.
void openai_talk::heed(const response_tool_call& event) {
  const auto same = [&](const conversation::tool_call& each) { return each.id == event.call.id; };
  if (std::none_of(calls_.begin(), calls_.end(), same)) tell_call_part(event.call);
}

void openai_talk::heed(const response_tool_call_delta& event) {
  tell_call_part(event.part);
}

/// The first part of a call has its id and its name.
void openai_talk::tell_call_part(const conversation::tool_call& part) {
  asked_.reset();
  std::string delta = "{";
  if (!began_) delta += R"("role":"assistant","content":null,)";
  began_ = true;
  delta += R"("tool_calls":[)";
  if (calls_.empty() || calls_.back().id != part.id) {
    append_call(part, calls_.size(), delta);
    calls_.push_back(part);
  } else {
    json::object_writer write(delta);
    write.integer("index", std::ssize(calls_) - 1);
    auto function = write.object("function");
    function.text("arguments", part.arguments);
    function.close();
    write.close();
  }
  if (request_.streaming) reply(chunk(delta + "]}", {}));
}

void openai_talk::heed(const output_delta& event) {
  asked_.reset();
  if (!request_.streaming) return;
  const auto words = guest::words_in(event);
  std::string delta = "{";
  const bool first = !std::exchange(began_, true);
  if (first) delta += R"("role":"assistant",)";
  if (request_.sound == sound_format::none) {
    delta += R"("content":)";
    json::append_string(words, delta);
  } else {
    delta += R"("audio":)";
    json::object_writer sound(delta);
    if (first) sound.text("id", "audio_" + name());
    spoken_ += words;
    if (!words.empty()) sound.text("transcript", words);
    if (const auto heard = guest::sound_in(event)) sound.text("data", to_pcm16(heard, sound_format::pcm16));
    sound.close();
  }
  reply(chunk(delta + "}", {}, encode_scores(event.scores)));
}

/// The id with all that was said comes last; the first one only names the answer.
std::string openai_talk::last_of_sound() {
  std::string out = R"({"audio":)";
  {
    json::object_writer sound(out);
    sound.text("id", spoken_id(name(), std::exchange(spoken_, {})));
    sound.integer("expires_at", created_s_ + spoken_id_seconds);
    sound.close();
  }
  return out + "}";
}

/// What tells this choice from others.
std::string openai_talk::name() const {
  const auto dash = id_.find('-');
  return id_.substr(dash == id_.npos ? 0 : dash + 1) + (request_.choices > 1 ? "-" + std::to_string(choice_) : "");
}

std::string openai_talk::chunk(std::string_view delta, std::string_view finish_reason, std::string_view scores) {
  std::string data = chunk_head() + R"(,"choices":[{"index":)" + std::to_string(choice_) + R"(,"delta":)";
  data.append(delta).append(R"(,"logprobs":)").append(scores.empty() ? "null" : encode_logprobs(scores));
  data += R"(,"finish_reason":)";
  data += finish_reason.empty() ? "null" : "\"" + std::string(finish_reason) + "\"";
  return as_event(data + "}]}");
}

const std::string& openai_talk::chunk_head() {
  if (chunk_head_.empty()) chunk_head_ = head("chat.completion.chunk");
  return chunk_head_;
}

std::string openai_talk::head(std::string_view object) const {
  std::string out;
  json::object_writer write(out);
  write.text("id", id_);
  write.text("object", object);
  write.integer("created", created_s_);
  write.text("model", request_.model);
  return out;
}

} // namespace parley::protocol
