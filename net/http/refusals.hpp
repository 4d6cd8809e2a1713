#pragma once

#include "net/access/access_control.hpp"
#include "net/beast.hpp"
#include "net/http/http_message.hpp"
#include "protocol/openai/talk.hpp"

#include <string_view>

// The answers to HTTP clients that are refused.
namespace parley::net {

/// For a request that Beast could not parse.
http_reply unreadable(error_code why);

std::string_view words_for(refusal why);

/// In the format of Parley's own routes (docs/protocol.md 13).
http_reply reply_to(refusal why);

/// In the format of `POST /v1/chat/completions`.
http_reply completion_refusal(refusal why);
http_reply completion_error(const protocol::openai_fault& fault);

} // namespace parley::net
