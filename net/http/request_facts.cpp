#include "net/http/request_facts.hpp"

#include "net/target.hpp"
#include "net/text.hpp"

namespace parley::net {

std::optional<http_reply> upgrade_fault(const request& sent, bool early_bytes) {
  if (sent[http::field::sec_websocket_version] != "13")
    return error_reply(426, "upgrade_required", "only version 13 of WebSocket is spoken here");
  if (sent[http::field::sec_websocket_key].empty())
    return error_reply(400, "bad_request", "Sec-WebSocket-Key is missing");
  if (early_bytes) return error_reply(400, "bad_request", "frames were sent before the upgrade was answered");
  return std::nullopt;
}

std::optional<http_reply> head_fault(const request& sent) {
  const auto codings = sent.count(http::field::transfer_encoding);
  const auto lengths = sent.count(http::field::content_length);
  const bool listed =
      header(sent, http::field::content_length).find_first_not_of("0123456789") != std::string_view::npos;
  if (lengths > 1 || listed || (codings > 0 && (lengths > 0 || sent.version() < 11)))
    return error_reply(400, "bad_request", "where the body of this request ends is not certain");
  if (codings > 1 || (codings == 1 && lower(header(sent, http::field::transfer_encoding)) != "chunked"))
    return error_reply(501, "not_implemented", "the only transfer coding here is chunked");
  if (sent.version() >= 11 && sent.count(http::field::expect) > 0 && !waits_for_continue(sent))
    return error_reply(417, "expectation_failed", "the only expectation that is met here is 100-continue");
  return std::nullopt;
}

bool waits_for_continue(const request& sent) {
  return sent.version() >= 11 && sent.count(http::field::expect) == 1 &&
         lower(header(sent, http::field::expect)) == "100-continue";
}

std::string join(const request& sent, http::field name) {
  std::string all;
  const auto [first, last] = sent.equal_range(name);
  for (auto field = first; field != last; ++field) all.append(field->value()).push_back(',');
  return all;
}

std::string join(const request& sent, std::string_view name) {
  std::string all;
  const auto [first, last] = sent.equal_range(beast::string_view(name.data(), name.size()));
  for (auto field = first; field != last; ++field) all.append(all.empty() ? "" : ",").append(field->value());
  return all;
}

std::string_view header(const request& sent, http::field name) {
  const auto value = sent[name];
  return {value.data(), value.size()};
}

std::string_view header(const request& sent, std::string_view name) {
  const auto value = sent[beast::string_view(name.data(), name.size())];
  return {value.data(), value.size()};
}

namespace {

bool is_forwarded(const request& sent) {
  for (const auto& field : sent) {
    const std::string name = lower({field.name_string().data(), field.name_string().size()});
    if (name == "forwarded" || name == "via" || name == "x-real-ip" || name.starts_with("x-forwarded")) return true;
  }
  return false;
}

} // namespace

credentials credentials_of(const request& sent, std::string_view subprotocols, const peer& who) {
  credentials from;
  from.authorization = header(sent, http::field::authorization);
  from.api_key = header(sent, "api-key");
  from.subprotocols = subprotocols;
  from.origin = header(sent, http::field::origin);
  if (sent.count(http::field::host) == 1) from.host = header(sent, http::field::host);
  from.forwarded = is_forwarded(sent);
  from.query = split_target(sent.target()).query;
  from.address = who.group;
  from.from_loopback = who.loopback;
  return from;
}

bool is_for_pages(std::string_view path) {
  return path.starts_with("/v1/") || path.starts_with("/openai/") || path == "/health" || path == "/ready";
}

bool changes_something(http::verb method) {
  return method != http::verb::get && method != http::verb::head && method != http::verb::options;
}

} // namespace parley::net
