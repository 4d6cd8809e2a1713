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

void check_name(field_reader& in, std::string_view path, std::string_view name) {
  if (!is_tool_name(name)) in.fail(error_code::invalid_payload, path, "not 1 to 64 of A-Z, a-z, 0-9, _ and -");
}

bool refuses_tools(field_reader& in, std::string_view path, std::size_t count, std::size_t bytes) {
  if (count <= max_tools && bytes <= max_tools_bytes) return false;
  in.fail(error_code::invalid_payload, path, "more than 128 tools or 64 KiB");
  return true;
}

void check_count_of_calls(field_reader& in, std::string_view path, std::size_t count) {
  if (count > max_calls) in.fail(error_code::invalid_payload, path, "more than 128 calls");
}

void check_required(field_reader& in, std::string_view path, const conversation::turn_request& of) {
  if (of.tool_required && of.tools.empty()) in.fail(error_code::invalid_payload, path, "there are no tools");
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

/// What a function is called with is an object.
void check_parameters(field_reader& in, const field& parameters) {
  if (!parameters.at.given() || may_be_object(parameters.at)) return;
  in.fail(error_code::invalid_payload, field_reader::find(parameters, {"type"}).path,
          "the parameters of a function are an object");
}

bool has(const std::vector<conversation::tool>& tools, std::string_view name) {
  return std::any_of(tools.begin(), tools.end(), [&](const auto& each) { return each.name == name; });
}

/// Whether it is one of the words; then `out` has it.
bool read_word(std::string_view word, tool_choice& out) {
  if (word == "auto") return true;
  if (word != "none" && word != "required") return false;
  out.mode = word == "none" ? tool_choice::how::none : tool_choice::how::required;
  return true;
}

void read_function(field_reader& in, const field& holder, const std::vector<conversation::tool>& tools,
                   std::string& into) {
  const auto function = function_of(in, holder);
  if (in.failed()) return;
  const auto name = in.require(function, {"name"});
  if (in.failed()) return;
  std::string scratch;
  into = in.required_text(name, scratch);
  if (!has(tools, into)) in.fail(error_code::invalid_payload, name.path, "none of the tools");
}

/// `{"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}`, or the same without the inner object.
void read_allowed(field_reader& in, const field& choice, const std::vector<conversation::tool>& tools,
                  tool_choice& out) {
  const auto nested = field_reader::find(choice, {"allowed_tools"});
  const auto holder = nested.at.given() ? in.required_object(nested) : choice;
  if (in.failed()) return;
  std::string scratch;
  const auto mode = field_reader::find(holder, {"mode"});
  if (const auto word = in.text(mode, scratch); word && (*word == "none" || !read_word(*word, out)))
    in.fail(error_code::invalid_payload, mode.path, "neither auto nor required");
  const auto list = in.require(holder, {"tools"});
  if (in.failed()) return;
  const auto all = json::elements(list.at, max_tools + 1);
  if (all.empty() || all.size() > max_tools)
    return in.fail(error_code::invalid_payload, list.path, "not a list of 1 to 128 tools");
  for (std::size_t i = 0; i < all.size() && !in.failed(); ++i) {
    const auto each = field_reader::element(list, all[i], i);
    if (in.required_object(each); !in.failed()) read_function(in, each, tools, out.allowed.emplace_back());
  }
}

/// Without `strict`, what cannot be honoured of a schema is left out.
void read_strict(field_reader& in, const field& function, const field& parameters, const conversation::tool& of) {
  bool strict = false;
  in.boolean(field_reader::find(function, {"strict"}), strict);
  if (parameters.at.given() && strict) check_schema(in, parameters, true, of.parameters);
}

} // namespace

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
  check_name(in, name.path, out.name);
  in.text(field_reader::find(function, {"description"}), scratch);
  const auto parameters = in.object(field_reader::find(function, {"parameters"}));
  check_parameters(in, parameters);
  if (in.failed()) return out;
  if (parameters.at.given()) json::append_spaced(parameters.at, out.parameters);
  out.signature = signature_of(from, function);
  read_strict(in, function, parameters, out);
  return out;
}

std::vector<conversation::tool> read_tool_list(field_reader& in, const field& tools) {
  std::vector<conversation::tool> out;
  if (!tools.at.given()) return out;
  if (!tools.at.is(json::kind::array)) {
    in.fail(error_code::invalid_payload, tools.path, "not an array");
    return out;
  }
  const auto all = json::elements(tools.at, max_tools + 1);
  if (refuses_tools(in, tools.path, all.size(), tools.at.raw().size())) return out;
  for (std::size_t i = 0; i < all.size() && !in.failed(); ++i)
    out.push_back(read_tool(in, field_reader::element(tools, all[i], i)));
  return out;
}

tool_choice read_tool_choice(field_reader& in, const field& choice, const std::vector<conversation::tool>& tools) {
  tool_choice out;
  if (!choice.at.given()) return out;
  std::string scratch;
  if (choice.at.is(json::kind::string)) {
    const auto word = in.required_text(choice, scratch);
    if (read_word(word, out)) return out;
    out.mode = tool_choice::how::required;
    out.name = word;
    if (!has(tools, word))
      in.fail(error_code::invalid_payload, choice.path, "none of auto, none, required, and of the tools");
    return out;
  }
  const auto whole = in.required_object(choice);
  if (in.failed()) return out;
  const auto type = field_reader::find(whole, {"type"});
  const auto kind = in.text(type, scratch).value_or("function");
  if (in.failed() || (kind != "function" && read_word(kind, out))) return out;
  if (kind == "allowed_tools") {
    read_allowed(in, whole, tools, out);
    return out;
  }
  if (kind != "function") {
    in.fail(error_code::invalid_payload, type.path, "not function");
    return out;
  }
  out.mode = tool_choice::how::required;
  read_function(in, whole, tools, out.name);
  return out;
}

void read_tools(field_reader& in, const field& tools, const field& choice, conversation::turn_request& out) {
  out.tools = read_tool_list(in, tools);
  if (in.failed()) return;
  auto chosen = read_tool_choice(in, choice, out.tools);
  if (in.failed()) return;
  const auto& allowed = chosen.allowed;
  if (!allowed.empty())
    std::erase_if(out.tools, [&](const auto& each) {
      return std::find(allowed.begin(), allowed.end(), each.name) == allowed.end();
    });
  if (chosen.mode == tool_choice::how::none) out.tools.clear();
  out.tool_required = chosen.mode == tool_choice::how::required;
  out.tool_name = std::move(chosen.name);
  check_required(in, choice.path, out);
}

void check_tools(field_reader& in, const std::string& path, const conversation::turn_request& of, std::size_t written) {
  std::size_t bytes = written;
  if (written == 0)
    for (const auto& each : of.tools) bytes += std::max(each.signature.size(), each.parameters.size());
  if (refuses_tools(in, path, of.tools.size(), bytes)) return;
  for (std::size_t i = 0; i < of.tools.size(); ++i)
    check_name(in, path + "[" + std::to_string(i) + "].name", of.tools[i].name);
  if (!of.tool_name.empty() && !has(of.tools, of.tool_name))
    in.fail(error_code::invalid_payload, "input.tool_choice.name", "none of the tools");
  check_required(in, "input.tool_choice", of);
}

void check_tool_calls(field_reader& in, const std::string& path, const std::vector<conversation::tool_call>& calls) {
  check_count_of_calls(in, path, calls.size());
}

std::string read_call_id(field_reader& in, const field& from) {
  auto id = field_reader::name(from);
  if (id.empty() && from.at.given() && !from.at.raw().empty())
    in.fail(error_code::invalid_payload, from.path, "not an id of 1 to 256 bytes");
  return id;
}

std::vector<conversation::tool_call> read_tool_calls(field_reader& in, const field& from) {
  std::vector<conversation::tool_call> out;
  if (!from.at.given()) return out;
  if (!from.at.is(json::kind::array)) {
    in.fail(error_code::invalid_payload, from.path, "not an array");
    return out;
  }
  const auto all = json::elements(from.at, max_calls + 1);
  check_count_of_calls(in, from.path, all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto call = field_reader::element(from, all[i], i);
    if (in.required_object(call); in.failed()) return out;
    const auto function = function_of(in, call);
    if (in.failed()) return out;
    const auto name = in.require(function, {"name"});
    const auto arguments = in.require(function, {"arguments"});
    if (in.failed()) return out;
    std::string scratch;
    auto& made = out.emplace_back();
    made.id = read_call_id(in, field_reader::find(call, {"id"}));
    made.name = in.required_text(name, scratch);
    if (arguments.at.is(json::kind::string))
      made.arguments = json::unescape(arguments.at);
    else
      json::append_spaced(arguments.at, made.arguments);
  }
  return out;
}

} // namespace parley::protocol
