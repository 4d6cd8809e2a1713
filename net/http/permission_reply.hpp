#pragma once

#include "net/http/http_message.hpp"

namespace parley::net {

/// The refusal for somebody without permissions: 401 where a key is needed, 403 elsewhere.
http_reply permission_denied(const http_request& request);

} // namespace parley::net
