#include "net/routes/page.hpp"

#include <utility>

namespace parley::net {
namespace {

constexpr std::string_view content_security_policy =
    "default-src 'self'; img-src 'self' blob:; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

/// Whether an If-None-Match names this version (RFC 9110 13.1.2). Tags in the table are strong and contain no commas.
bool names(std::string_view if_none_match, std::string_view etag) {
  return if_none_match == "*" || if_none_match.find(etag) != std::string_view::npos;
}

http_reply reply_with(const page_file& file, std::string_view if_none_match) {
  http_reply reply;
  reply.type = file.type;
  reply.headers = {{"ETag", file.etag},
                   {"Cache-Control", "no-cache"},
                   {"Content-Security-Policy", content_security_policy},
                   {"Permissions-Policy", "camera=(self), microphone=(self), display-capture=(self)"},
                   {"Referrer-Policy", "no-referrer"}};
  if (names(if_none_match, file.etag)) {
    reply.status = 304;
  } else {
    reply.body = reply_body::constant(file.body);
  }
  return reply;
}

} // namespace

void add_page(router& table) {
  for (const page_file& file : page_files()) {
    table.add("GET", file.path, [&file](const http_request& request, auto&, auto respond) {
      respond(reply_with(file, request.if_none_match));
    });
  }
}

} // namespace parley::net
