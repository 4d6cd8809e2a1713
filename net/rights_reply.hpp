#pragma once

#include "net/http_message.hpp"

namespace parley::net {

/// Why somebody without rights is sent away.
http_reply no_rights(const http_request& request);

} // namespace parley::net
