#include "protocol/realtime/chat_prompt.hpp"

#include "protocol/chat_budget.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::protocol::realtime {
namespace {

constexpr int default_answer_tokens = 1024;
constexpr std::size_t most_messages = 200; ///< chat takes 256
constexpr std::size_t most_views = 4;      ///< of what a camera saw
constexpr std::size_t most_calls = 128;    ///< in one message
constexpr std::size_t most_picture_bytes =
    item_limits{}.picture_bytes; ///< as in a conversation; the same one counts each time
constexpr std::string_view not_kept = "(spoken)";
constexpr std::string_view not_shown = "(a picture)";
constexpr std::string_view no_result = "(no result yet)";

std::string_view role_of(const item& one) {
  if (one.kind == item_kind::function_call_output) return "user";
  if (one.kind == item_kind::function_call || one.role == item_role::assistant) return "assistant";
  return one.role == item_role::system ? "system" : "user";
}

/// For each call in a context its result, and whether an item is such a result. Results without their call are none.
struct results {
  explicit results(const std::vector<kept_item>& context) : of(context.size()), told(context.size()) {
    std::vector<std::size_t> open; // calls without a result so far
    for (std::size_t at = 0; at < context.size(); ++at) {
      const auto& one = *context[at];
      if (one.kind == item_kind::function_call) open.push_back(at);
      if (one.kind != item_kind::function_call_output) continue;
      const auto call = std::find_if(open.rbegin(), open.rend(),
                                     [&](std::size_t each) { return context[each]->call_id == one.call_id; });
      if (call == open.rend()) continue;
      of[*call] = &one;
      told[at] = true;
      open.erase(std::next(call).base());
    }
    unanswered = open.size();
  }

  std::vector<const item*> of; ///< null = there is none
  std::vector<bool> told;      ///< with its call
  std::size_t unanswered = 0;  ///< calls
};

/// The messages of a chat turn: items of one speaker in a row make one message. The results of calls follow their calls, in
/// the same order, whenever they came.
class message_list {
public:
  explicit message_list(std::string_view instructions) { add_text("system", instructions); }

  void add(const std::vector<kept_item>& context) {
    const results known(context);
    for (std::size_t at = 0; at < context.size(); ++at) {
      const auto& one = *context[at];
      if (one.kind == item_kind::function_call) {
        if (open_results_.size() == most_calls) tell_results();
        add_call(one, known.of[at]);
        continue;
      }
      tell_results();
      if (one.kind == item_kind::message)
        for (const auto& part : one.content) add(role_of(one), part);
      else if (!known.told[at])
        add_text("user", one.payload);
    }
    tell_results();
  }

  void add_text(std::string_view role, std::string_view text) {
    if (text.empty()) return;
    auto& content = content_of(role);
    content += R"({"type":"text","text":)";
    json::append_string(text, content);
    content += '}';
  }

  std::string_view last_role() const { return messages_.empty() ? std::string_view() : messages_.back().role; }

  void encode(std::string& out) const {
    out += '[';
    for (const auto& each : messages_) {
      if (&each != &messages_.front()) out += ',';
      out += R"({"role":")";
      out.append(each.role) += '"';
      if (!each.content.empty()) out.append(R"(,"content":[)").append(each.content) += ']';
      if (!each.calls.empty()) out.append(R"(,"tool_calls":[)").append(each.calls) += ']';
      out += '}';
    }
    out += ']';
  }

private:
  struct message {
    std::string_view role;
    std::string content;
    std::string calls{}; ///< after its content
  };

  void add_call(const item& one, const item* result) {
    if (open_results_.empty() && last_role() != "assistant") messages_.push_back({"assistant", {}});
    auto& calls = messages_.back().calls;
    calls += calls.empty() ? "" : ",";
    json::object_writer write(calls);
    write.text("name", one.name);
    write.text("arguments", one.payload);
    write.close();
    open_results_.push_back(result != nullptr ? std::string_view(result->payload) : no_result);
  }

  /// Of the calls since the last time.
  void tell_results() {
    for (const auto output : std::exchange(open_results_, {})) {
      messages_.push_back({"tool", R"({"type":"text","text":)"});
      json::append_string(output, messages_.back().content);
      messages_.back().content += '}';
    }
  }

  void add(std::string_view role, const item_part& part) {
    if (part.picture && role == "user") {
      content_of(role).append(R"({"type":"image","data":")").append(*part.picture) += R"("})";
    } else if (part.sound && role == "user") {
      auto& content = content_of(role);
      content += R"({"type":"audio","data":")";
      append_samples(to_floats(*part.sound), content);
      content += R"("})";
    } else if (part.type == item_part::kind::input_audio && part.text.empty()) {
      add_text(role, not_kept);
    } else if (part.type == item_part::kind::input_image) {
      add_text(role, not_shown);
    } else {
      add_text(role, part.text);
    }
  }

  /// The content of this speaker's message, ready for its next part.
  std::string& content_of(std::string_view role) {
    if (messages_.empty() || messages_.back().role != role || !messages_.back().calls.empty())
      messages_.push_back({role, {}});
    auto& content = messages_.back().content;
    if (!content.empty()) content += ',';
    return content;
  }

  std::vector<message> messages_;
  std::vector<std::string_view> open_results_; ///< of the last message's calls
};

/// Without what a camera saw, except the newest `most` views.
std::vector<kept_item> without_old_views(std::vector<kept_item> context, std::size_t most) {
  std::vector<kept_item> kept;
  for (auto one = context.rbegin(); one != context.rend(); ++one) {
    const bool view = is_camera_view(**one);
    if (view && most == 0) continue;
    if (view) --most;
    kept.push_back(std::move(*one));
  }
  std::reverse(kept.begin(), kept.end());
  return kept;
}

/// The items that go into the turn: the newest. A call without a result takes two messages.
std::vector<kept_item> chosen(std::vector<kept_item> context) {
  auto kept = without_old_views(std::move(context), most_views);
  if (kept.size() > most_messages) kept.erase(kept.begin(), kept.end() - most_messages);
  if (const auto all = kept.size() + results(kept).unanswered; all > most_messages)
    kept.erase(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(all - most_messages));
  return kept;
}

/// The bytes that the text takes up in a JSON string.
std::size_t written_bytes(std::string_view text) {
  std::size_t bytes = text.size();
  for (const char c : text) {
    const bool short_escape = c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f';
    if (short_escape)
      bytes += 1;
    else if (static_cast<unsigned char>(c) < 0x20)
      bytes += 5;
  }
  return bytes;
}

/// What a turn takes up, judged as chat does before anything is written.
class turn_size {
public:
  void add_text(std::string_view text) {
    if (text.empty()) return;
    const auto written = written_bytes(text);
    bytes_ += written;
    note(budget_.add_items(1));
    note(budget_.add_text(written));
  }

  void add(const item& one) {
    const bool users = role_of(one) == "user";
    add_text(one.payload);
    for (const auto& part : one.content) {
      if (users && part.picture)
        add_picture(*part.picture);
      else if (users && part.sound)
        add_sound(part.sound->size());
      else
        add_text(part.text);
    }
  }

  std::size_t bytes() const { return bytes_; }
  std::optional<std::string>& excess() { return excess_; }

private:
  void add_picture(std::string_view text) {
    bytes_ += text.size();
    picture_bytes_ += text.size();
    note(budget_.add_items(1));
    note(budget_.add_pictures(1));
    if (picture_bytes_ > most_picture_bytes) note("more than 32 MiB of pictures in one turn");
  }

  void add_sound(std::size_t samples) {
    bytes_ += base64::encoded_size(samples * sizeof(float));
    note(budget_.add_items(1));
    note(budget_.add_seconds(static_cast<double>(samples) / model_input_rate));
  }

  void note(std::optional<std::string> what) {
    if (!excess_) excess_ = std::move(what);
  }

  chat_budget budget_;
  std::size_t bytes_ = 0;
  std::size_t picture_bytes_ = 0;
  std::optional<std::string> excess_;
};

bool only_small_pictures(const std::vector<kept_item>& context) {
  bool any = false;
  for (const auto& one : context) {
    for (const auto& part : one->content) {
      if (part.picture && !part.low_detail) return false;
      any = any || part.picture;
    }
  }
  return any;
}

std::string_view speaker(const item& one) {
  const auto role = role_of(one);
  return role == "user" ? "User: " : role == "assistant" ? "You: " : "Note: ";
}

} // namespace

chat_turn::chat_turn(response_request request, std::vector<kept_item> context, std::shared_ptr<const voice_map> voices,
                     std::string voice)
    : request_(std::move(request)), context_(chosen(std::move(context))), voices_(std::move(voices)),
      voice_(std::move(voice)) {
  turn_size size;
  size.add_text(request_.instructions);
  for (const auto& one : context_) size.add(*one);
  bytes_ = size.bytes();
  excess_ = std::move(size.excess());
}

std::string chat_turn::encode() const {
  const auto& request = request_;
  const auto voice = voice_named(voices_.get(), voice_);
  message_list messages(request.instructions);
  messages.add(context_);
  if (messages.last_role() != "user" && messages.last_role() != "tool")
    messages.add_text("user", context_.empty() ? "Please begin the conversation." : "Please go on.");

  std::string out = R"({"type":"input.append","input":{"messages":)";
  messages.encode(out);
  out += R"(,"generation":{"max_new_tokens":)" +
         std::to_string(request.max_output_tokens > 0 ? request.max_output_tokens : default_answer_tokens) + "}";
  if (request.tools != "[]")
    out += R"(,"tools":)" + request.tools + R"(,"tool_choice":)" + request.tool_choice + R"(,"tool_call_deltas":true)";
  if (only_small_pictures(context_)) out += R"(,"image":{"max_slice_nums":1})";
  if (request.audible) {
    out += R"(,"tts":{"enabled":true)";
    if (!voice.empty()) out.append(R"(,"ref_audio_data":")").append(voice) += '"';
    out += '}';
  }
  out += "}}";
  return out;
}

namespace {

std::string call_in_words(const item& call) {
  return call.name + "(" + call.payload + ")";
}

/// What a call or its result says. `call`: whose result it is, if that has to be said.
std::string tool_in_words(const item& one, const item* call) {
  if (one.kind == item_kind::function_call) return call_in_words(one);
  return call == nullptr ? one.payload : call_in_words(*call) + ": " + one.payload;
}

/// The call whose result the item at `at` is, unless it stands right before it.
const item* call_of(const item_list& items, std::size_t at) {
  if (items[at].kind != item_kind::function_call_output) return nullptr;
  for (auto before = at; before-- > 0;) {
    const auto& one = items[before];
    if (one.kind == item_kind::function_call && one.call_id == items[at].call_id)
      return before + 1 == at ? nullptr : &one;
  }
  return nullptr;
}

} // namespace

text_message item_in_words(const item_list& items, std::size_t at) {
  using conversation::role;
  const auto& one = items[at];
  text_message out;
  out.from = one.kind == item_kind::function_call_output ? role::tool
             : role_of(one) == "assistant"               ? role::assistant
             : role_of(one) == "system"                  ? role::system
                                                         : role::user;
  out.text = tool_in_words(one, call_of(items, at));
  for (const auto& part : one.content) {
    if (!out.text.empty()) out.text += '\n';
    if (part.type == item_part::kind::input_image)
      out.text += not_shown;
    else
      out.text += part.text.empty() ? not_kept : std::string_view(part.text);
  }
  return out;
}

std::string in_words(const item_list& context, std::size_t most_bytes) {
  std::vector<std::string> lines;
  std::size_t bytes = 0;
  bool viewed = false;
  for (std::size_t at = context.size(); at-- > 0;) {
    const auto& one = context[at];
    if (is_camera_view(one) && std::exchange(viewed, true)) continue;
    std::string line(speaker(one));
    for (const auto& part : one.content) {
      if (part.type == item_part::kind::input_image)
        line.append(not_shown) += ' ';
      else
        line += (part.text.empty() ? std::string(not_kept) : part.text) + " ";
    }
    line += tool_in_words(one, call_of(context, at));
    bytes += line.size();
    if (bytes > most_bytes) break;
    lines.push_back(std::move(line));
  }
  std::string out;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) out += *line + "\n";
  return out;
}

} // namespace parley::protocol::realtime
