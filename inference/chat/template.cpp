#include "inference/chat/template.hpp"

#include <utility>

namespace parley::inference::chat {

namespace {

using namespace std::string_view_literals;

constexpr auto think_begin = "<think>"sv;
constexpr auto think_end = "</think>"sv;

std::string_view name(role who) {
  switch (who) {
  case role::system: return "system";
  case role::user:
  case role::tool: return "user";
  case role::assistant: break;
  }
  return "assistant";
}

/// Part of a text, by bytes.
struct slice {
  std::size_t begin;
  std::size_t end;

  bool empty() const { return begin == end; }

  slice without_newlines_left(std::string_view text) const {
    auto b = begin;
    while (b < end && text[b] == '\n') ++b;
    return {b, end};
  }

  slice without_newlines_right(std::string_view text) const {
    auto e = end;
    while (e > begin && text[e - 1] == '\n') --e;
    return {begin, e};
  }
};

bool is_query(const template_message& m) {
  const auto& text = m.content.text;
  return m.from == role::user && !(text.starts_with("<tool_response>") && text.ends_with("</tool_response>"));
}

void add_tools(rendered_text& out, std::span<const template_message> messages,
               std::span<const parley::conversation::tool> tools) {
  out.add("<|im_start|>system\n");
  if (!messages.empty() && messages.front().from == role::system) {
    out.add(messages.front().content);
    out.add("\n\n");
  }
  out.add(
      "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function "
      "signatures within <tools></tools> XML tags:\n<tools>");
  for (const auto& each : tools) {
    out.add("\n");
    out.quote(each.signature);
  }
  out.add("\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
          "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": "
          "<args-json-object>}\n</tool_call><|im_end|>\n");
}

void add_call(rendered_text& out, const parley::conversation::tool_call& call) {
  out.add("<tool_call>\n{\"name\": \"");
  out.quote(call.name);
  out.add("\", \"arguments\": ");
  out.quote(call.arguments);
  out.add("}\n</tool_call>");
}

/// Results in a row make one turn of the user.
void add_result(rendered_text& out, const rendered_text& content, bool first, bool last) {
  if (first) out.add("<|im_start|>user");
  out.add("\n<tool_response>\n");
  out.add(content);
  out.add("\n</tool_response>");
  if (last) out.add("<|im_end|>\n");
}

void add_assistant(rendered_text& out, const template_message& said, bool after_query, bool last) {
  const auto& content = said.content;
  std::string_view text = content.text;
  slice answer{0, text.size()}, reasoning{0, 0};
  if (auto first = text.find(think_end); first != std::string_view::npos) {
    answer = slice{text.rfind(think_end) + think_end.size(), text.size()}.without_newlines_left(text);
    reasoning = slice{0, first}.without_newlines_right(text);
    auto opening = text.substr(0, reasoning.end).rfind(think_begin);
    if (opening != std::string_view::npos) reasoning.begin = opening + think_begin.size();
    reasoning = reasoning.without_newlines_left(text);
  }
  out.add("<|im_start|>assistant\n");
  if (after_query && (last || !reasoning.empty())) {
    reasoning = reasoning.without_newlines_left(text).without_newlines_right(text);
    out.add("<think>\n");
    out.add(content, reasoning.begin, reasoning.end);
    out.add("\n</think>\n\n");
  }
  bool separate = !answer.empty();
  if (after_query && (last || !reasoning.empty())) answer = answer.without_newlines_left(text);
  out.add(content, answer.begin, answer.end);
  for (const auto& call : said.calls) {
    if (std::exchange(separate, true)) out.add("\n");
    add_call(out, call);
  }
  out.add("<|im_end|>\n");
}

} // namespace

std::string generation_prompt(const template_options& options) {
  std::string prompt = "<|im_start|>assistant\n";
  if (!options.enable_thinking) prompt += "<think>\n\n</think>\n\n";
  if (options.use_tts_template) prompt += "<|tts_bos|>";
  return prompt;
}

rendered_text apply_template(std::span<const template_message> messages, const template_options& options,
                             std::span<const parley::conversation::tool> tools) {
  rendered_text out;
  if (!tools.empty()) add_tools(out, messages, tools);
  auto last_query = messages.size() - 1;
  for (auto i = messages.size(); i-- > 0;) {
    if (is_query(messages[i])) {
      last_query = i;
      break;
    }
  }
  for (auto i = std::size_t{0}; i < messages.size(); ++i) {
    const auto& m = messages[i];
    const auto is_result = [&](std::size_t at) { return at < messages.size() && messages[at].from == role::tool; };
    if (i == 0 && m.from == role::system && !tools.empty()) continue;
    if (m.from == role::tool) {
      add_result(out, m.content, i == 0 || !is_result(i - 1), !is_result(i + 1));
      continue;
    }
    if (m.from == role::assistant) {
      add_assistant(out, m, i > last_query, i + 1 == messages.size());
      continue;
    }
    out.add("<|im_start|>");
    out.add(name(m.from));
    out.add("\n");
    out.add(m.content);
    out.add("<|im_end|>\n");
  }
  if (options.generation_prompt) out.add(generation_prompt(options));
  return out;
}

} // namespace parley::inference::chat
