#pragma once

#include "net/http_message.hpp"

namespace parley::net {

/// Why somebody without rights is sent away: 401 where a key is asked, 403 elsewhere.
http_reply no_rights(const http_request& request);

} // namespace parley::net
