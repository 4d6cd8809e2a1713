#include "inference/chat/template.hpp"

namespace parley::inference::chat {

namespace {

using namespace std::string_view_literals;

constexpr auto think_begin = "<think>"sv;
constexpr auto think_end = "</think>"sv;

std::string_view name(role who) {
  switch (who) {
  case role::system: return "system";
  case role::user: return "user";
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

void add_assistant(rendered_text& out, const rendered_text& content, bool after_query, bool last) {
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
    answer = answer.without_newlines_left(text);
    out.add("<think>\n");
    out.add(content, reasoning.begin, reasoning.end);
    out.add("\n</think>\n\n");
  }
  out.add(content, answer.begin, answer.end);
  out.add("<|im_end|>\n");
}

} // namespace

std::string generation_prompt(const template_options& options) {
  std::string prompt = "<|im_start|>assistant\n";
  if (!options.enable_thinking) prompt += "<think>\n\n</think>\n\n";
  if (options.use_tts_template) prompt += "<|tts_bos|>";
  return prompt;
}

rendered_text apply_template(std::span<const template_message> messages, const template_options& options) {
  rendered_text out;
  auto last_query = messages.size() - 1;
  for (auto i = messages.size(); i-- > 0;) {
    if (is_query(messages[i])) {
      last_query = i;
      break;
    }
  }
  for (auto i = std::size_t{0}; i < messages.size(); ++i) {
    const auto& m = messages[i];
    if (m.from == role::assistant) {
      add_assistant(out, m.content, i > last_query, i + 1 == messages.size());
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
