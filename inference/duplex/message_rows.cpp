#include "inference/duplex/message_rows.hpp"

#include "inference/chat/rendered_text.hpp"

#include <algorithm>
#include <string_view>

namespace parley::inference::duplex {

namespace {

std::string_view opening(role who) {
  switch (who) {
  case role::system: return "<|im_start|>system\n";
  case role::assistant: return "<|im_start|>assistant\n";
  case role::user: return "<|im_start|>user\n";
  case role::tool: break;
  }
  return "<|im_start|>user";
}

/// One message, or the results that are one turn of the user.
chat::rendered_text render(std::span<const text_message> part) {
  chat::rendered_text out;
  out.add(opening(part.front().from));
  for (const auto& each : part) {
    const bool result = each.from == role::tool;
    if (result) out.add("\n<tool_response>\n");
    out.quote(each.text);
    if (result) out.add("\n</tool_response>");
  }
  out.add("<|im_end|>");
  return out;
}

} // namespace

message_rows encode_messages(const tokenizer& tokens, std::span<const text_message> messages) {
  message_rows out;
  const auto is_result = [](const text_message& each) { return each.from == role::tool; };
  while (!messages.empty()) {
    const auto results = std::ranges::find_if_not(messages, is_result) - messages.begin();
    const auto part = messages.first(static_cast<std::size_t>(std::max<std::ptrdiff_t>(results, 1)));
    messages = messages.subspan(part.size());
    auto text = render(part);
    if (!messages.empty()) text.add("\n");
    const auto ids = tokens.encode(text.text, text.quoted);
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.parts.push_back({std::ssize(ids), part.front().from == role::system});
  }
  return out;
}

} // namespace parley::inference::duplex
