#include "protocol/call/call_request.hpp"

#include "base/lower.hpp"
#include "base/utf8.hpp"
#include "protocol/json/document.hpp"
#include "protocol/openai/realtime/session_config.hpp"
#include "protocol/openai/shared/budget.hpp"

#include <algorithm>
#include <utility>

namespace parley::protocol::call {
namespace {

using openai::refuse;

constexpr std::size_t most_parts = 4;
constexpr std::size_t longest_boundary = 70; ///< RFC 2046 5.1.1

/// The value of a parameter of a header: `name=value` or `name="value"` behind a semicolon. Empty if there is none.
std::string_view parameter(std::string_view header, std::string_view name) {
  const auto small = base::lower(header);
  for (auto at = small.find(';'); at != small.npos; at = small.find(';', at + 1)) {
    const auto begin = small.find_first_not_of(" \t", at + 1);
    if (begin == small.npos || small.compare(begin, name.size(), name) != 0) continue;
    auto value = header.substr(begin + name.size());
    if (!value.starts_with('=')) continue;
    value.remove_prefix(1);
    if (value.starts_with('"')) {
      value.remove_prefix(1);
      return value.substr(0, value.find('"'));
    }
    return value.substr(0, value.find_first_of("; \t"));
  }
  return {};
}

struct part {
  std::string_view name;
  std::string_view content;
};

/// The next part behind a delimiter; nothing if it is not well formed. `rest` begins behind that delimiter's own bytes.
std::optional<part> cut_part(std::string_view& rest, std::string_view delimiter) {
  if (!rest.starts_with("\r\n")) return std::nullopt;
  rest.remove_prefix(2);
  const auto head_end = rest.find("\r\n\r\n");
  if (head_end == rest.npos) return std::nullopt;
  auto head = rest.substr(0, head_end);
  rest.remove_prefix(head_end + 4);
  const auto end = rest.find(delimiter);
  if (end == rest.npos) return std::nullopt;
  part out{{}, rest.substr(0, end)};
  rest.remove_prefix(end + delimiter.size());
  while (!head.empty()) {
    const auto line_end = std::min(head.find("\r\n"), head.size());
    const auto line = head.substr(0, line_end);
    head.remove_prefix(std::min(line_end + 2, head.size()));
    if (base::lower(line).starts_with("content-disposition:")) out.name = parameter(line, "name");
  }
  return out;
}

openai::result<std::string> read_session(std::string_view text) {
  if (text.size() > most_session_bytes) return refuse("invalid_value", "The session is longer than 64 KiB.", "session");
  const auto document = base::utf8::valid(text) ? json::scan(text) : json::scan("");
  const auto root = json::root(document);
  if (document.outcome != json::verdict::good || !root.is(json::kind::object))
    return refuse("invalid_json", "The session is not a JSON object.", "session");
  openai::connection_budget budget(nullptr);
  openai::event_sound event(budget, {});
  if (const auto config = openai::realtime::updated({}, root, &event); !config) return tl::unexpected(config.error());
  return std::string(text);
}

openai::result<call_request> read_parts(std::string_view content_type, std::string_view body) {
  const auto boundary = parameter(content_type, "boundary");
  if (boundary.empty() || boundary.size() > longest_boundary)
    return refuse("invalid_body", "The body is multipart/form-data without a boundary.");
  const auto opening = "--" + std::string(boundary), delimiter = "\r\n" + opening;
  if (!body.starts_with(opening)) return refuse("invalid_body", "The body does not begin with its boundary.");
  body.remove_prefix(opening.size());
  std::optional<std::string_view> sdp, session;
  for (std::size_t count = 0; !body.starts_with("--"); ++count) {
    const auto one = cut_part(body, delimiter);
    if (!one || count == most_parts)
      return refuse("invalid_body", "The body is not multipart/form-data of at most 4 parts.");
    if (one->name == "sdp") sdp = one->content;
    if (one->name == "session") session = one->content;
  }
  if (!sdp) return refuse("missing_required_parameter", "Missing required parameter: 'sdp'.", "sdp");
  auto offered = read_offer(*sdp);
  if (!offered) return tl::unexpected(std::move(offered.error()));
  call_request out{std::move(*offered)};
  if (!session) return out;
  auto begins = read_session(*session);
  if (!begins) return tl::unexpected(std::move(begins.error()));
  out.session = std::move(*begins);
  return out;
}

} // namespace

openai::result<call_request> read_call_request(std::string_view content_type, std::string_view body) {
  const auto type = base::lower(content_type.substr(0, content_type.find_first_of("; \t")));
  if (type == "multipart/form-data") return read_parts(content_type, body);
  if (type != "application/sdp")
    return refuse("unsupported_content_type",
                  "The body must be application/sdp, or multipart/form-data with the parts sdp and session.");
  auto offered = read_offer(body);
  if (!offered) return tl::unexpected(std::move(offered.error()));
  return call_request{std::move(*offered)};
}

} // namespace parley::protocol::call
