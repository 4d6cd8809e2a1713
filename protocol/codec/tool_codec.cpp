#include "protocol/codec/tool_codec.hpp"

#include "protocol/codec/schema_check.hpp"
#include "protocol/json/spaced.hpp"
#include "protocol/json/writer.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace parley::protocol {
namespace {

constexpr std::size_t max_tools = 128;
constexpr std::size_t max_tools_bytes = 64u << 10;
constexpr std::size_t max_name_bytes = 64;
constexpr std::size_t max_calls = 128;

bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= max_name_bytes && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

field list_item(const field& list, json::value at, std::size_t index) {
  return {at, list.path + "[" + std::to_string(index) + "]"};
}

/// The function itself: it stands in a member `function`, or, in the Realtime API, in the tool.
field function_of(field_reader& in, const field& tool) {
  const auto nested = field_reader::find(tool, {"function"});
  return nested.at.given() ? in.required_object(nested) : tool;
}

/// As the model learned it: `{"type": "function", "function": {…}}`.
std::string signature_of(const field& tool, const field& function) {
  std::string out;
  if (function.at.index() != tool.at.index()) {
    json::append_spaced(tool.at, out);
    return out;
  }
  out = R"({"type": "function", "function": {)";
  bool first = true;
  for (const char* name : {"name", "description", "parameters", "strict"}) {
    const auto member = json::member(function.at, name);
    if (!member.given()) continue;
    out.append(std::exchange(first, false) ? "\"" : ", \"").append(name).append("\": ");
    json::append_spaced(member, out);
  }
  return out + "}}";
}

/// Without `strict`, what cannot be honoured of a schema is left out.
void read_strict(field_reader& in, const field& function, const field& parameters, const conversation::tool& of) {
  bool strict = false;
  in.boolean(field_reader::find(function, {"strict"}), strict);
  if (parameters.at.given() && strict) check_schema(in, parameters, true, of.parameters);
}

conversation::tool read_tool(field_reader& in, const field& from) {
  conversation::tool out;
  if (in.required_object(from); in.failed()) return out;
  std::string scratch;
  const auto type = field_reader::find(from, {"type"});
  if (const auto name = in.text(type, scratch); name && *name != "function")
    in.fail(error_code::invalid_payload, type.path, "not function");
  const auto function = function_of(in, from);
  if (in.failed()) return out;
  const auto name = in.require(function, {"name"});
  if (in.failed()) return out;
  out.name = in.required_text(name, scratch);
  if (!is_tool_name(out.name)) in.fail(error_code::invalid_payload, name.path, "not 1 to 64 of A-Z, a-z, 0-9, _ and -");
  const auto parameters = in.object(field_reader::find(function, {"parameters"}));
  if (in.failed()) return out;
  if (parameters.at.given()) json::append_spaced(parameters.at, out.parameters);
  out.signature = signature_of(from, function);
  read_strict(in, function, parameters, out);
  return out;
}

void read_choice(field_reader& in, const field& choice, conversation::turn_request& out) {
  if (!choice.at.given()) return;
  std::string scratch;
  if (choice.at.is(json::kind::string)) {
    const auto name = in.required_text(choice, scratch);
    if (name == "none")
      out.tools.clear();
    else if (name == "required")
      out.tool_required = true;
    else if (name != "auto")
      in.fail(error_code::invalid_payload, choice.path, "none of auto, none, required");
  } else {
    const auto whole = in.required_object(choice);
    if (in.failed()) return;
    const auto name = in.require(function_of(in, whole), {"name"});
    if (in.failed()) return;
    out.tool_name = in.required_text(name, scratch);
    out.tool_required = true;
    if (std::none_of(out.tools.begin(), out.tools.end(), [&](const auto& t) { return t.name == out.tool_name; }))
      in.fail(error_code::invalid_payload, name.path, "none of the tools");
  }
  if (out.tool_required && out.tools.empty()) in.fail(error_code::invalid_payload, choice.path, "there are no tools");
}

} // namespace

void read_tools(field_reader& in, const field& tools, const field& choice, conversation::turn_request& out) {
  if (tools.at.given()) {
    if (!tools.at.is(json::kind::array)) return in.fail(error_code::invalid_payload, tools.path, "not an array");
    const auto all = json::elements(tools.at, max_tools + 1);
    if (all.size() > max_tools || tools.at.raw().size() > max_tools_bytes)
      return in.fail(error_code::invalid_payload, tools.path, "more than 128 tools or 64 KiB");
    for (std::size_t i = 0; i < all.size() && !in.failed(); ++i)
      out.tools.push_back(read_tool(in, list_item(tools, all[i], i)));
  }
  if (!in.failed()) read_choice(in, choice, out);
}

std::vector<conversation::tool_call> read_tool_calls(field_reader& in, const field& from) {
  std::vector<conversation::tool_call> out;
  if (!from.at.given()) return out;
  if (!from.at.is(json::kind::array)) {
    in.fail(error_code::invalid_payload, from.path, "not an array");
    return out;
  }
  const auto all = json::elements(from.at, max_calls);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto call = list_item(from, all[i], i);
    if (in.required_object(call); in.failed()) return out;
    const auto function = function_of(in, call);
    if (in.failed()) return out;
    const auto name = in.require(function, {"name"});
    const auto arguments = in.require(function, {"arguments"});
    if (in.failed()) return out;
    std::string scratch;
    auto& made = out.emplace_back();
    made.id = field_reader::name(field_reader::find(call, {"id"}));
    made.name = in.required_text(name, scratch);
    if (arguments.at.is(json::kind::string))
      made.arguments = json::unescape(arguments.at);
    else
      json::append_spaced(arguments.at, made.arguments);
  }
  return out;
}

} // namespace parley::protocol
