#include "protocol/openai/talk.hpp"

#include "base/wav.hpp"
#include "protocol/codec/client_side.hpp"
#include "protocol/codec/server_glance.hpp"
#include "protocol/json/document.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/wav.hpp"
#include "protocol/openai/spoken_id.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace parley::protocol {
namespace {

constexpr std::uint32_t output_rate = 24'000;
constexpr std::int64_t spoken_id_seconds = 24 * 3600; ///< how long it is said to be valid; it is for longer

std::string text_of(json::value at) {
  return at.is(json::kind::string) ? json::unescape(at) : std::string();
}

/// The wire's float32 samples as base64 of PCM16, with a WAV header if requested.
std::string to_pcm16(std::string_view float_base64, sound_format as) {
  const auto samples = decode_samples(float_base64, {0, std::numeric_limits<std::size_t>::max()}, "audio");
  std::string out;
  if (!samples) return out;
  const std::string wav = write_wav(**samples, output_rate);
  const auto bytes = std::string_view(wav).substr(as == sound_format::wav ? 0 : base::wav_header_bytes);
  base64::append(std::as_bytes(std::span(bytes)), out);
  return out;
}

std::optional<std::string_view> raw_text(json::value at) {
  return at.is(json::kind::string) ? std::optional(at.raw()) : std::nullopt;
}

conversation::tool_call call_in(json::value event) {
  return {text_of(json::member(event, "id")), text_of(json::member(event, "name")),
          text_of(json::member(event, "arguments"))};
}

/// The JSON of what the wire says of an event's tokens; empty if it says nothing.
std::string_view scores_in(json::value event) {
  const auto scores = json::member(event, "logprobs");
  return scores.is(json::kind::array) ? scores.raw() : std::string_view();
}

std::int64_t count(json::value in, std::string_view name) {
  return json::to_integer(json::member(in, name)).value_or(0);
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

openai_step openai_talk::begin() {
  return {R"({"type":"session.init","payload":{}})", {}, false, {}};
}

openai_step openai_talk::on_frame(std::string_view frame) {
  openai_step step;
  if (over_) return step;
  const auto event = json::scan(frame);
  const auto root = json::root(event);
  switch (server_event_type_of(text_of(json::member(root, "type")))) {
  case server_event_type::created: {
    if (!id_.empty()) break;
    const std::string session = text_of(json::member(root, "session_id"));
    constexpr std::string_view prefix = "sess_";
    id_ = "chatcmpl-" + session.substr(session.starts_with(prefix) ? prefix.size() : 0);
    step.to_session = next_turn();
    break;
  }
  case server_event_type::spoken: {
    if (!request_.streaming) break;
    return on_delta(text_of(json::member(root, "text")), raw_text(json::member(root, "audio")).value_or(""),
                    scores_in(root));
  }
  case server_event_type::tool_call: return on_call(call_in(root));
  case server_event_type::tool_call_delta: return on_call_part(call_in(root));
  case server_event_type::response_done: {
    if (id_.empty()) break; // nothing has been asked
    const auto usage = json::member(root, "usage");
    const auto input = json::member(usage, "input_token_details");
    const auto output = json::member(usage, "output_token_details");
    return on_answer({text_of(json::member(root, "text")),
                      text_of(json::member(root, "reason")),
                      raw_text(json::member(root, "audio")),
                      scores_in(root),
                      {count(usage, "input_tokens"), count(input, "audio_tokens"), count(usage, "output_tokens"),
                       count(output, "audio_tokens")}});
  }
  case server_event_type::error: {
    const auto error = json::member(root, "error");
    over_ = step.over = true;
    step.fault = openai_fault_of(text_of(json::member(error, "code")), text_of(json::member(error, "message")));
    step.to_session = encode_close("user_stop");
    break;
  }
  case server_event_type::closed:
    over_ = step.over = true;
    step.fault = openai_fault{503, text_of(json::member(root, "reason")), "the session ended before its answer"};
    break;
  default: break;
  }
  return step;
}

/// The append of the current choice.
std::string openai_talk::next_turn() {
  auto append = choice_ + 1 < request_.choices ? request_.append : std::move(request_.append);
  if (const auto& place = request_.seed; place && choice_ > 0) {
    const auto seed = (place->seed + static_cast<std::uint64_t>(choice_)) & std::numeric_limits<std::int64_t>::max();
    append.replace(place->begin, place->bytes, std::to_string(seed));
  }
  return append;
}

/// A choice is complete; the next one is a turn of its own.
openai_step openai_talk::on_answer(const answer& done) {
  openai_step step;
  auto finish = finish_of(done.reason);
  if (finish == "stop" && !calls_.empty()) finish = "tool_calls";
  used_ = {done.used.prompt, done.used.prompt_audio, used_.completion + done.used.completion,
           used_.completion_audio + done.used.completion_audio};

  if (request_.streaming) {
    if (!began_) step.to_client = chunk(R"({"role":"assistant","content":""})", {});
    if (!spoken_.empty()) step.to_client += chunk(last_of_sound(), {});
    step.to_client += chunk("{}", finish, done.scores);
  } else {
    choices_ += choices_.empty() ? "" : ",";
    choices_ += R"({"index":)" + std::to_string(choice_) + R"(,"message":)";
    append_message(done);
    choices_ += R"(,"logprobs":)" + (request_.scored ? encode_logprobs(done.scores) : "null");
    choices_ += R"(,"finish_reason":")" + std::string(finish) + "\"}";
  }
  if (++choice_ < request_.choices) {
    began_ = false;
    calls_.clear();
    step.to_session = next_turn();
    return step;
  }
  over_ = step.over = true;
  step.to_session = encode_close("user_stop");
  if (!request_.streaming) {
    step.to_client = head("chat.completion") + R"(,"choices":[)" + choices_ + R"(],"usage":)" + encode_usage() + "}";
    return step;
  }
  if (request_.include_usage)
    step.to_client += as_event(chunk_head() + R"(,"choices":[],"usage":)" + encode_usage() + "}");
  step.to_client += as_event("[DONE]");
  return step;
}

/// The message of a choice that is not streamed.
void openai_talk::append_message(const answer& done) {
  choices_ += R"({"role":"assistant","refusal":null,"content":)";
  if (request_.sound != sound_format::none && done.audio) {
    choices_ += R"(null,"audio":)";
    json::object_writer sound(choices_);
    sound.text("id", spoken_id(name(), done.text));
    sound.integer("expires_at", created_s_ + spoken_id_seconds);
    sound.text("data", to_pcm16(*done.audio, request_.sound));
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
  write.integer("prompt_tokens", used_.prompt);
  write.integer("completion_tokens", used_.completion);
  write.integer("total_tokens", used_.prompt + used_.completion);
  auto prompt = write.object("prompt_tokens_details");
  prompt.integer("audio_tokens", used_.prompt_audio);
  prompt.integer("cached_tokens", 0);
  prompt.close();
  auto completion = write.object("completion_tokens_details");
  completion.integer("audio_tokens", used_.completion_audio);
  completion.integer("reasoning_tokens", 0);
  completion.close();
  write.close();
  return out;
}

/// What has come in parts needs no more.
openai_step openai_talk::on_call(conversation::tool_call call) {
  const auto same = [&](const conversation::tool_call& each) { return each.id == call.id; };
  if (std::any_of(calls_.begin(), calls_.end(), same)) return {};
  return on_call_part(std::move(call));
}

/// The first part of a call has its id and its name.
openai_step openai_talk::on_call_part(conversation::tool_call part) {
  std::string delta = "{";
  if (!began_) delta += R"("role":"assistant","content":null,)";
  began_ = true;
  delta += R"("tool_calls":[)";
  if (calls_.empty() || calls_.back().id != part.id) {
    append_call(part, calls_.size(), delta);
    calls_.push_back(std::move(part));
  } else {
    json::object_writer write(delta);
    write.integer("index", std::ssize(calls_) - 1);
    auto function = write.object("function");
    function.text("arguments", part.arguments);
    function.close();
    write.close();
  }
  if (!request_.streaming) return {};
  return {{}, chunk(delta + "]}", {}), false, {}};
}

/// The wire has the elements as this API has them.
std::string openai_talk::encode_logprobs(std::string_view scores) const {
  return R"({"content":)" + (scores.empty() ? std::string("[]") : std::string(scores)) + R"(,"refusal":null})";
}

openai_step openai_talk::on_delta(const std::string& text, std::string_view audio, std::string_view scores) {
  std::string delta = "{";
  const bool first = !std::exchange(began_, true);
  if (first) delta += R"("role":"assistant",)";
  if (request_.sound == sound_format::none) {
    delta += R"("content":)";
    json::append_string(text, delta);
  } else {
    delta += R"("audio":)";
    json::object_writer sound(delta);
    if (first) sound.text("id", "audio_" + name());
    spoken_ += text;
    if (!text.empty()) sound.text("transcript", text);
    if (!audio.empty()) sound.text("data", to_pcm16(audio, sound_format::pcm16));
    sound.close();
  }
  return {{}, chunk(delta + "}", {}, scores), false, {}};
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
