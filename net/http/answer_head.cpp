#include "net/http/answer_head.hpp"

#include <algorithm>
#include <string_view>

namespace parley::net {
namespace {

beast::string_view view(std::string_view text) {
  return {text.data(), text.size()};
}

/// A list of names of headers, as browsers send it.
bool is_header_list(std::string_view text) {
  constexpr std::size_t longest = 1024;
  return !text.empty() && text.size() <= longest && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_, ").find(c) != std::string_view::npos;
  });
}

/// For pages of other hosts (Fetch, 3.2). Nobody's cookies count here, so nothing is said of credentials.
void add_cors(http::response_header<>& head, const http_reply& reply, const answer_terms& terms) {
  head.set(http::field::access_control_allow_origin, terms.page);
  head.set(http::field::vary, "Origin");
  if (reply.status != 204 || reply.allow.empty()) {
    head.set(http::field::access_control_expose_headers,
             reply.location.empty() ? "Retry-After" : "Location, Retry-After");
    return;
  }
  head.set(http::field::access_control_allow_methods, reply.allow);
  if (is_header_list(terms.asked_headers)) head.set(http::field::access_control_allow_headers, terms.asked_headers);
  head.set(http::field::access_control_max_age, "600");
}

void add_connection(http::response_header<>& head, unsigned status, const answer_terms& terms) {
  if (!terms.keep_alive)
    head.set(http::field::connection, "close");
  else if (terms.http_1_0)
    head.set(http::field::connection, "keep-alive");
  if (status != 426) return;
  head.insert(http::field::connection, "upgrade");
  head.set(http::field::upgrade, "websocket");
  head.set(http::field::sec_websocket_version, "13");
}

} // namespace

http::response_header<> head_of(const http_reply& reply, const answer_terms& terms,
                                std::optional<std::uint64_t> length) {
  http::response_header<> head;
  head.version(11);
  head.result(reply.status);
  const auto reason = http::obsolete_reason(head.result());
  head.reason(reason);
  head.set(http::field::server, "parley");
  const bool has_body = reply.status != 204 && reply.status != 304;
  if (reply.status != 204) head.set(http::field::content_type, view(reply.type));
  head.set(http::field::cache_control, "no-store");
  head.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : reply.headers) head.set(view(name), view(value));
  if (!reply.location.empty()) head.set(http::field::location, reply.location);
  if (!reply.allow.empty()) head.set(http::field::allow, reply.allow);
  if (reply.status == 401) head.set(http::field::www_authenticate, "Bearer");
  if ((reply.status == 429 || reply.status == 503) && head.count(http::field::retry_after) == 0)
    head.set(http::field::retry_after, std::to_string(reply.retry_after_s));
  if (!terms.page.empty()) add_cors(head, reply, terms);
  add_connection(head, reply.status, terms);
  if (length) {
    if (has_body) head.set(http::field::content_length, std::to_string(*length));
    return head;
  }
  // nginx, and what is made of it, else collects an answer before it passes it on.
  head.set("X-Accel-Buffering", "no");
  if (in_chunks(terms)) head.set(http::field::transfer_encoding, "chunked");
  return head;
}

std::string written(const http::response_header<>& head) {
  std::string out = "HTTP/1.1 " + std::to_string(head.result_int()) + " ";
  out.append(head.reason().data(), head.reason().size()).append("\r\n");
  for (const auto& field : head) {
    out.append(field.name_string().data(), field.name_string().size()).append(": ");
    out.append(field.value().data(), field.value().size()).append("\r\n");
  }
  return out.append("\r\n");
}

} // namespace parley::net
