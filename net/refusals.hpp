#pragma once

#include "net/beast.hpp"
#include "net/gate.hpp"
#include "net/http_message.hpp"
#include "protocol/openai_talk.hpp"

#include <string_view>

// What is said over HTTP to those who are not served.
namespace parley::net {

/// Of a request that Beast could not read.
http_reply unreadable(error_code why);

std::string_view words_for(refusal why);

/// In the words of Parley's own routes (PROTOCOL.md 13).
http_reply reply_to(refusal why);

/// In the words of `POST /v1/chat/completions`.
http_reply completion_refusal(refusal why);
http_reply completion_error(const protocol::openai_fault& fault);

} // namespace parley::net
