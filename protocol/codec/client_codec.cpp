#include "protocol/codec/client_codec.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <array>

namespace parley::protocol {
namespace {

struct type_name {
  std::string_view wire;
  client_event_type type;
};

constexpr std::array<type_name, 7> type_names{{
    {"session.init", client_event_type::session_init},
    {"session.update", client_event_type::session_update},
    {"input.append", client_event_type::input_append},
    {"input_audio_buffer.append", client_event_type::input_audio_buffer_append},
    {"input.standalone", client_event_type::input_standalone},
    {"input.tool_result", client_event_type::input_tool_result},
    {"session.close", client_event_type::session_close},
}};

constexpr std::size_t shown_type_bytes = 64;

client_event_type type_of(std::string_view wire) {
  auto found =
      std::find_if(type_names.begin(), type_names.end(), [&](const type_name& one) { return one.wire == wire; });
  return found == type_names.end() ? client_event_type::unknown : found->type;
}

tl::unexpected<frame_fault> refuse(error_code code, std::string message) {
  return tl::unexpected(frame_fault{false, {code, std::move(message)}});
}

constexpr std::size_t max_reason_bytes = 64;

bool is_reason(std::string_view text) {
  auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

} // namespace

tl::expected<envelope, frame_fault> peek(std::string_view frame) {
  envelope out;
  out.body = json::scan(frame);
  switch (out.body.outcome) {
  case json::verdict::good: break;
  case json::verdict::malformed:
    return tl::unexpected(
        frame_fault{true, {error_code::invalid_payload, "not JSON at byte " + std::to_string(out.body.offset)}});
  case json::verdict::too_deep:
    return refuse(error_code::invalid_payload, "the JSON is nested deeper than " + std::to_string(json::max_depth));
  case json::verdict::too_many_values:
    return refuse(error_code::invalid_payload,
                  "the JSON has more than " + std::to_string(json::max_values) + " values");
  }
  auto root = json::root(out.body);
  if (!root.is(json::kind::object)) return refuse(error_code::invalid_payload, "the event is not a JSON object");
  auto type = json::member(root, "type");
  if (!type.present()) return refuse(error_code::missing_field, "type: required");
  if (!type.is(json::kind::string)) return refuse(error_code::invalid_payload, "type: not a string");
  // A long one is none of ours, and shown as it is written.
  const auto name = json::unescape(type, shown_type_bytes);
  out.type = name ? type_of(*name) : client_event_type::unknown;
  out.type_name = base::utf8::truncate(name ? std::string_view(*name) : type.raw(), shown_type_bytes);
  return out;
}

close_event decode_close(const envelope& from) {
  auto reason = json::member(json::root(from.body), "reason");
  if (reason.is(json::kind::string))
    if (auto text = json::unescape(reason, max_reason_bytes); text && is_reason(*text)) return {*std::move(text)};
  return {"user_stop"};
}

} // namespace parley::protocol
