#include "protocol/realtime/chat_prompt.hpp"

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
constexpr std::string_view not_kept = "(spoken)";

/// The messages of a chat turn: items of one speaker in a row make one message.
class message_list {
public:
  void add(std::string_view role, const item& one) {
    for (const auto& part : one.content) add(role, part);
    if (one.kind == item_kind::function_call) add_call(one);
    if (one.kind == item_kind::function_call_output) add_result(one.payload);
  }

  void add_text(std::string_view role, std::string_view text) {
    if (text.empty()) return;
    auto& content = content_of(role);
    content += R"({"type":"text","text":)";
    json::append_string(text, content);
    content += '}';
  }

  void add_call(const item& one) {
    if (last_role() != "assistant") messages_.push_back({"assistant", {}});
    auto& calls = messages_.back().calls;
    calls += calls.empty() ? "" : ",";
    json::object_writer write(calls);
    write.text("id", one.call_id);
    write.text("name", one.name);
    write.text("arguments", one.payload);
    write.close();
  }

  /// A result whose call is gone is told by the user.
  void add_result(std::string_view output) {
    if (messages_.empty() || (messages_.back().role != "tool" && messages_.back().calls.empty()))
      return add_text("user", output);
    messages_.push_back({"tool", R"({"type":"text","text":)"});
    json::append_string(output, messages_.back().content);
    messages_.back().content += '}';
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
};

std::string_view role_of(const item& one) {
  if (one.kind == item_kind::function_call_output) return "user";
  if (one.kind == item_kind::function_call || one.role == item_role::assistant) return "assistant";
  return one.role == item_role::system ? "system" : "user";
}

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

/// The items that go into the turn: the newest.
std::vector<kept_item> chosen(std::vector<kept_item> context) {
  auto kept = without_old_views(std::move(context), most_views);
  if (kept.size() > most_messages) kept.erase(kept.begin(), kept.end() - most_messages);
  return kept;
}

/// An upper bound on the bytes that the text takes up in a JSON string.
std::size_t written_bytes(std::string_view text) {
  const auto escapes = std::count_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; });
  return text.size() + 5 * static_cast<std::size_t>(escapes);
}

std::size_t written_bytes(const item& one) {
  const bool users = role_of(one) == "user";
  std::size_t bytes = written_bytes(one.payload);
  for (const auto& part : one.content) {
    if (users && part.picture)
      bytes += part.picture->size();
    else if (users && part.sound)
      bytes += base64::encoded_size(part.sound->size() * sizeof(float));
    else
      bytes += written_bytes(part.text);
  }
  return bytes;
}

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
  for (const auto& one : context_) bytes_ += written_bytes(*one);
}

std::string chat_turn::encode() const {
  const auto& request = request_;
  const auto voice = voice_named(voices_.get(), voice_);
  message_list messages;
  messages.add_text("system", request.instructions);
  for (const auto& one : context_) messages.add(role_of(*one), *one);
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

text_message in_words(const item& one) {
  using conversation::role;
  text_message out;
  out.from = one.kind == item_kind::function_call_output ? role::tool
             : role_of(one) == "assistant"               ? role::assistant
             : role_of(one) == "system"                  ? role::system
                                                         : role::user;
  if (one.kind == item_kind::function_call) {
    out.text = one.name + "(" + one.payload + ")";
    return out;
  }
  out.text = one.payload;
  for (const auto& part : one.content) {
    if (!out.text.empty()) out.text += '\n';
    if (part.type == item_part::kind::input_image)
      out.text += "(a picture)";
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
        line += "(a picture) ";
      else
        line += (part.text.empty() ? std::string(not_kept) : part.text) + " ";
    }
    line += one.payload;
    bytes += line.size();
    if (bytes > most_bytes) break;
    lines.push_back(std::move(line));
  }
  std::string out;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) out += *line + "\n";
  return out;
}

} // namespace parley::protocol::realtime
