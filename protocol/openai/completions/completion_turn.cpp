#include "protocol/openai/completions/completion_turn.hpp"

#include "protocol/codec/chat_parts.hpp"
#include "protocol/codec/tool_codec.hpp"
#include "protocol/codec/tool_results.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/json/writer.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace parley::protocol {
namespace {

/// Reads what one message says, in each way in which it may say it.
struct content_reader {
  field_reader& in;
  const std::string& path;
  chat_budget& budget;

  std::vector<content_item> operator()(std::monostate) { return {}; }
  std::vector<content_item> operator()(json::value text) { return {read_text(in, {text, path}, budget)}; }
  std::vector<content_item> operator()(const std::string& words) {
    refuse(in, {{}, path}, budget.add_text(json::written_bytes(words)));
    return {text_item{words}};
  }

  std::vector<content_item> operator()(const std::vector<openai_prompt::part>& parts) {
    std::vector<content_item> out;
    if (parts.empty()) in.fail(error_code::invalid_payload, path, "empty");
    refuse(in, {{}, path}, budget.add_items(parts.size()));
    for (std::size_t i = 0; i < parts.size() && !in.failed(); ++i)
      out.push_back(item(parts[i], path + "[" + std::to_string(i) + "]"));
    return out;
  }

private:
  content_item item(const openai_prompt::part& part, const std::string& at) {
    switch (part.kind) {
    case openai_prompt::part_kind::text: return read_text(in, {part.content, at + ".text"}, budget);
    case openai_prompt::part_kind::image: return image_item{read_picture(in, {part.content, at + ".data"}, budget)};
    case openai_prompt::part_kind::audio: break;
    }
    return read_audio(in, {part.content, at + ".data"}, budget);
  }
};

std::vector<message> read_messages(field_reader& in, const std::vector<openai_prompt::said>& all) {
  const std::string path = "input.messages";
  std::vector<message> out;
  if (refuses_messages(in, path, all.size())) return out;
  out.reserve(all.size());
  std::vector<std::string> call_ids;
  call_ids.reserve(all.size());
  chat_budget budget;
  for (std::size_t i = 0; i < all.size() && !in.failed(); ++i) {
    const auto& from = all[i];
    const auto at = path + "[" + std::to_string(i) + "]", content = at + ".content";
    auto& read = out.emplace_back();
    read.from = from.from;
    read.calls = read_calls(in, {from.calls, at + ".tool_calls"}, budget);
    call_ids.push_back(read_call_id(in, {from.call_id, at + ".tool_call_id"}));
    if (!in.failed()) read.content = std::visit(content_reader{in, content, budget}, from.content);
  }
  if (!in.failed()) order_results(in, {{}, path}, call_ids, out);
  return out;
}

/// A value as it stands in the body; empty = it is not given.
std::string as_written(json::value of) {
  if (!of.is(json::kind::string)) return std::string(of.raw());
  return "\"" + std::string(of.raw()) + "\"";
}

} // namespace

result<chat_append_event> completion_turn::make() const {
  const auto& from = *what_;
  field_reader in;
  if (choice_ > 0) in.trust_schemas(); // they were checked with the first
  auto out = from.terms;
  if (out.seed && choice_ > 0)
    out.seed = (*out.seed + static_cast<std::uint64_t>(choice_)) & std::numeric_limits<std::int64_t>::max();
  read_stop(in, {from.stop, "input.generation.stop"}, out);
  if (!in.failed()) out.messages = read_messages(in, from.messages);
  out.names_tools = from.tools.given() || from.tool_choice.given();
  if (!in.failed()) read_tools(in, {from.tools, "input.tools"}, {from.tool_choice, "input.tool_choice"}, out);
  if (!in.failed()) read_format(in, in.object({from.format, "input.response_format"}), out);
  if (in.failed()) return in.failure();
  out.tools_as_written = as_written(from.tools);
  out.tool_choice_as_written = as_written(from.tool_choice);
  out.format_as_written = as_written(from.format);
  return out;
}

} // namespace parley::protocol
