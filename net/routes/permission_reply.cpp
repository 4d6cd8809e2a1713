#include "net/routes/permission_reply.hpp"

namespace parley::net {

http_reply permission_denied(const http_request& request) {
  if (request.may.key_asked) return error_reply(401, "unauthorized", "this requires an API key");
  return error_reply(403, "forbidden",
                     "allowed only from the server's own machine, addressed as localhost and not through a proxy");
}

} // namespace parley::net
