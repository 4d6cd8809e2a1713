#include "net/http/permission_reply.hpp"

namespace parley::net {

http_reply permission_denied(const http_request& request) {
  if (request.may.key_asked) return error_reply(401, "unauthorized", "this asks for an API key");
  return error_reply(403, "forbidden",
                     "only from the machine of the server, which asks for localhost and not through a proxy");
}

} // namespace parley::net
