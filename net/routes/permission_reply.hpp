#pragma once

#include "net/routes/http_message.hpp"

namespace parley::net {

/// The refusal if permissions are missing: 401 if a key is needed, otherwise 403.
http_reply permission_denied(const http_request& request);

} // namespace parley::net
