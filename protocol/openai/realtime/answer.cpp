#include "protocol/openai/realtime/answer.hpp"

#include "protocol/openai/shared/audio_format.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace parley::protocol::openai::realtime {
namespace {

constexpr std::size_t delta_samples = speech::model_output_rate; ///< a second: 64 KB of base64
constexpr std::array<std::string_view, 4> status_names{"completed", "cancelled", "incomplete", "failed"};

void write_usage(json::object_writer& to, const usage& used) {
  auto out = to.object("usage");
  const auto in_tokens = used.input_text + used.input_audio + used.input_vision;
  const auto out_tokens = used.output_text + used.output_audio;
  out.integer("total_tokens", in_tokens + out_tokens);
  out.integer("input_tokens", in_tokens);
  out.integer("output_tokens", out_tokens);
  auto input = out.object("input_token_details");
  input.integer("text_tokens", used.input_text);
  input.integer("audio_tokens", used.input_audio);
  input.integer("image_tokens", used.input_vision);
  input.integer("cached_tokens", 0);
  auto cached = input.object("cached_tokens_details");
  for (const auto* kind : {"text_tokens", "audio_tokens", "image_tokens"}) cached.integer(kind, 0);
  cached.close();
  input.close();
  auto output = out.object("output_token_details");
  output.integer("text_tokens", used.output_text);
  output.integer("audio_tokens", used.output_audio);
  output.close();
  out.close();
}

/// Why a response failed, if nothing more is known than the code.
std::string_view words_of(std::string_view code) {
  if (code == "server_busy") return "The server had no free slot for this response in time.";
  if (code == "rate_limit_exceeded") return "Too many sessions have been started: try again later.";
  if (code == "inference_error") return "The model failed while it made this response.";
  return "The server lost this response.";
}

void write_details(json::object_writer& to, const answer_end& how) {
  if (how.status == answer_end::how::completed) return to.json("status_details", "null");
  auto details = to.object("status_details");
  details.text("type", status_names[static_cast<std::size_t>(how.status)]);
  if (how.status == answer_end::how::failed) {
    auto error = details.object("error");
    error.text("type", how.error_type);
    error.text("code", how.reason);
    error.text("message", how.message.empty() ? words_of(how.reason) : std::string_view(how.message));
    error.close();
  } else {
    details.text("reason", how.reason);
  }
  details.close();
}

} // namespace

/// Changes the conversation's copy of its message, unless the client has cut it, or deleted it meanwhile.
template<class Change>
void answer::store(Change change) {
  if (items_ == nullptr) return;
  items_->edit(item_.id, [&](item& kept) {
    kept.status = item_.status;
    if (!cut_) change(kept);
  });
}

answer::answer(outgoing& out, item_list* items, std::string conversation_id, response_request request,
               output_buffer* media)
    : out_(out), items_(items), conversation_id_(std::move(conversation_id)), request_(std::move(request)),
      id_(out.make_id("resp_")), media_(media), encoder_(request_.output) {
  item_.id = out.make_id("item_");
  item_.role = item_role::assistant;
  item_.status = item_status::in_progress;
}

void answer::create() {
  out_.event("response.created", [&](auto& event) { write_response(event, "in_progress", nullptr, nullptr); });
}

/// Announces an item that has just begun. Returns the id of the item before it.
std::string answer::add_item(const item& what) {
  std::string before;
  if (items_ != nullptr) before = items_->last_id();
  const auto shown = encode_item(what);
  out_.event("response.output_item.added", [&](auto& event) {
    event.text("response_id", id_);
    event.integer("output_index", std::ssize(output_));
    event.json("item", shown);
  });
  if (items_ != nullptr) {
    out_.event("conversation.item.added", [&](auto& event) {
      write_id(event, "previous_item_id", before);
      event.json("item", shown);
    });
  }
  return before;
}

void answer::begin() {
  if (std::exchange(began_, true)) return;
  end_call(item_status::completed);
  before_ = add_item(item_);
  auto& part = item_.content.emplace_back();
  part.type = request_.audible ? item_part::kind::output_audio : item_part::kind::output_text;
  if (items_ != nullptr) items_->append(item_);
  out_.event("response.content_part.added", [&](auto& event) {
    place(event);
    event.json("part", content_part(false));
  });
}

void answer::call_part(const conversation::tool_call& part) {
  if (!call_ || call_->call_id != part.id) begin_call(part.id, part.name);
  if (!call_ || part.arguments.empty()) return;
  auto& called = *call_;
  called.payload += part.arguments;
  out_.event("response.function_call_arguments.delta", [&](auto& event) {
    place_call(called, event);
    event.text("delta", part.arguments);
  });
}

void answer::call(const conversation::tool_call& what) {
  if (std::find(called_.begin(), called_.end(), what.id) != called_.end()) return;
  if (!call_ || call_->call_id != what.id) call_part(what);
  call_is_whole_ = call_.has_value();
}

void answer::begin_call(const std::string& id, const std::string& name) {
  end_call(item_status::completed);
  end_message();
  call_.emplace();
  call_->id = out_.make_id("item_");
  call_->kind = item_kind::function_call;
  call_->status = item_status::in_progress;
  call_->name = name;
  call_->call_id = id;
  before_ = add_item(*call_);
}

/// Does nothing if no call has begun.
void answer::end_call(item_status status) {
  if (!call_) return;
  auto called = *call_;
  out_.event("response.function_call_arguments.done", [&](auto& event) {
    place_call(called, event);
    event.text("name", called.name);
    event.text("arguments", called.payload);
  });
  call_.reset();
  called_.push_back(called.call_id);
  called.status = std::exchange(call_is_whole_, false) ? item_status::completed : status;
  if (items_ != nullptr) items_->append(called);
  close_item(called);
}

/// Before a call: the next message is another item.
void answer::end_message() {
  if (!std::exchange(began_, false)) return;
  end_item(item_status::completed);
  item_.content.clear();
  item_.sound_ms = 0;
  made_ms_ = 0;
  cut_ = false;
  item_.id = out_.make_id("item_");
  item_.status = item_status::in_progress;
}

void answer::place_call(const item& called, json::object_writer& to) const {
  to.text("response_id", id_);
  to.text("item_id", called.id);
  to.integer("output_index", std::ssize(output_));
  to.text("call_id", called.call_id);
}

void answer::say(std::string_view words) {
  begin();
  if (words.empty()) return;
  item_.content.front().text += words;
  store([&](item& kept) { kept.content.front().text += words; });
  out_.event(request_.audible ? "response.output_audio_transcript.delta" : "response.output_text.delta",
             [&](auto& event) {
               place(event);
               event.text("delta", words);
             });
}

void answer::made(std::size_t samples) {
  made_ms_ += 1000.0 * static_cast<double>(samples) / speech::model_output_rate;
}

void answer::sound(const pcm& all, time_point now) {
  if (!request_.audible) return;
  begin();
  if (media_ != nullptr) {
    item_.sound_ms += 1000.0 * static_cast<double>(all->size()) / speech::model_output_rate;
    store([&](item& kept) { kept.sound_ms = item_.sound_ms; });
    return media_->play(id_, item_.id, all, now);
  }
  std::span<const float> samples = *all;
  while (!samples.empty()) {
    const auto piece = samples.first(std::min(samples.size(), delta_samples));
    samples = samples.subspan(piece.size());
    item_.sound_ms += 1000.0 * static_cast<double>(piece.size()) / speech::model_output_rate;
    store([&](item& kept) { kept.sound_ms = item_.sound_ms; });
    send_sound(encoder_.feed(piece));
  }
}

void answer::send_sound(const std::string& base64) {
  if (base64.empty()) return;
  out_.event("response.output_audio.delta", [&](auto& event) {
    place(event);
    event.text("delta", base64);
  });
}

void answer::finish(const answer_end& how, const usage& used) {
  const bool well = how.status == answer_end::how::completed;
  end_call(well ? item_status::completed : item_status::incomplete);
  if (well && output_.empty()) begin();
  if (began_) {
    if (well && request_.audible && media_ == nullptr) send_sound(encoder_.finish());
    end_item(well ? item_status::completed : item_status::incomplete);
    if (how.status == answer_end::how::cancelled && made_ms_ > item_.sound_ms) {
      store([&](item& kept) {
        auto& words = kept.content.front().text;
        words = cut_words(words, item_.sound_ms / made_ms_);
      });
    }
  }
  out_.event("response.done", [&](auto& event) {
    write_response(event, status_names[static_cast<std::size_t>(how.status)], &how, &used);
  });
}

void answer::end_item(item_status status) {
  item_.status = status;
  store([](item&) {});
  const auto& words = item_.content.front().text;
  if (request_.audible) out_.event("response.output_audio.done", [&](auto& event) { place(event); });
  out_.event(request_.audible ? "response.output_audio_transcript.done" : "response.output_text.done",
             [&](auto& event) {
               place(event);
               event.text(request_.audible ? "transcript" : "text", words);
             });
  out_.event("response.content_part.done", [&](auto& event) {
    place(event);
    event.json("part", content_part(true));
  });
  close_item(item_);
}

void answer::close_item(const item& what) {
  const auto shown = encode_item(what);
  if (items_ != nullptr) {
    out_.event("conversation.item.done", [&](auto& event) {
      write_id(event, "previous_item_id", before_);
      event.json("item", shown);
    });
  }
  out_.event("response.output_item.done", [&](auto& event) {
    event.text("response_id", id_);
    event.integer("output_index", std::ssize(output_));
    event.json("item", shown);
  });
  output_.push_back(shown);
}

void answer::place(json::object_writer& to) const {
  to.text("response_id", id_);
  to.text("item_id", item_.id);
  to.integer("output_index", std::ssize(output_));
  to.integer("content_index", 0);
}

/// Parts are called otherwise than the same content in items.
std::string answer::content_part(bool whole) const {
  std::string out;
  json::object_writer write(out);
  write.text("type", request_.audible ? "audio" : "text");
  write.text(request_.audible ? "transcript" : "text", whole ? item_.content.front().text : "");
  write.close();
  return out;
}

void answer::write_response(json::object_writer& to, std::string_view status, const answer_end* how,
                            const usage* used) const {
  auto out = to.object("response");
  out.text("object", "realtime.response");
  out.text("id", id_);
  out.text("status", status);
  how != nullptr ? write_details(out, *how) : out.json("status_details", "null");
  std::string items;
  for (const auto& each : output_) items += (items.empty() ? "" : ",") + each;
  out.json("output", "[" + items + "]");
  write_id(out, "conversation_id", in_conversation() ? conversation_id_ : "");
  out.json("output_modalities", request_.audible ? R"(["audio"])" : R"(["text"])");
  request_.max_output_tokens == 0 ? out.text("max_output_tokens", "inf")
                                  : out.integer("max_output_tokens", request_.max_output_tokens);
  auto audio = out.object("audio");
  auto output = audio.object("output");
  output.json("format", encode_format(request_.output));
  output.text("voice", request_.voice);
  output.close();
  audio.close();
  used != nullptr ? write_usage(out, *used) : out.json("usage", "null");
  out.json("metadata", request_.metadata);
  out.close();
}

} // namespace parley::protocol::openai::realtime
