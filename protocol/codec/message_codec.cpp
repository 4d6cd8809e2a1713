#include "protocol/codec/message_codec.hpp"

#include "protocol/limits.hpp"

#include <string>
#include <string_view>

namespace parley::protocol {

using conversation::role;
using conversation::text_message;

namespace {

/// A character takes at most six times as many bytes when it is escaped.
constexpr std::size_t longest_escape = 6;

std::string too_long() {
  return "more than " + std::to_string(max_context_bytes) + " bytes of text";
}

/// Takes what a message says from what all of them may still say.
bool count_text(field_reader& in, std::string_view path, std::size_t bytes, std::size_t& bytes_left) {
  if (bytes == 0)
    in.fail(error_code::invalid_payload, path, "empty");
  else if (bytes > bytes_left)
    in.fail(error_code::invalid_payload, path, too_long());
  else
    bytes_left -= bytes;
  return !in.failed();
}

bool refuses_count(field_reader& in, std::string_view path, std::size_t messages) {
  if (messages > 0 && messages <= max_context_messages) return false;
  in.fail(error_code::invalid_payload, path,
          messages == 0 ? std::string("empty") : "more than " + std::to_string(max_context_messages) + " messages");
  return true;
}

text_message read_message(field_reader& in, const field& from, std::size_t& bytes_left) {
  text_message out;
  if (in.required_object(from); in.failed()) return out;
  const auto speaker = in.require(from, {"role"});
  if (!in.failed()) out.from = read_role(in, speaker);
  if (in.failed()) return out;
  const auto content = in.require(from, {"content"});
  if (in.failed()) return out;
  std::string scratch;
  if (content.at.is(json::kind::string) && content.at.raw().size() > longest_escape * bytes_left) {
    in.fail(error_code::invalid_payload, content.path, too_long());
    return out;
  }
  const auto text = in.required_text(content, scratch);
  if (in.failed()) return out;
  if (!count_text(in, content.path, text.size(), bytes_left)) return out;
  out.text = text;
  return out;
}

} // namespace

role read_role(field_reader& in, const field& from) {
  std::string scratch;
  const auto name = in.required_text(from, scratch);
  if (name == "system") return role::system;
  if (name == "assistant") return role::assistant;
  if (name == "tool") return role::tool;
  if (name != "user") in.fail(error_code::invalid_payload, from.path, "none of system, user, assistant, tool");
  return role::user;
}

std::vector<text_message> read_context(field_reader& in, const field& from) {
  std::vector<text_message> out;
  if (!from.at.given()) return out;
  if (!from.at.is(json::kind::array)) {
    in.fail(error_code::invalid_payload, from.path, "not an array");
    return out;
  }
  const auto messages = json::elements(from.at, max_context_messages + 1);
  if (refuses_count(in, from.path, messages.size())) return out;
  auto bytes_left = max_context_bytes;
  for (std::size_t i = 0; i < messages.size() && !in.failed(); ++i)
    out.push_back(read_message(in, {messages[i], from.path + "[" + std::to_string(i) + "]"}, bytes_left));
  return out;
}

void check_context(field_reader& in, const std::string& path, const std::vector<text_message>& context) {
  if (context.empty() || refuses_count(in, path, context.size())) return;
  auto bytes_left = max_context_bytes;
  for (std::size_t i = 0; i < context.size(); ++i)
    if (!count_text(in, path + "[" + std::to_string(i) + "].content", context[i].text.size(), bytes_left)) return;
}

} // namespace parley::protocol
