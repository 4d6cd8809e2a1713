#pragma once

#include "net/access/access_control.hpp"
#include "net/beast.hpp"
#include "net/routes/http_message.hpp"
#include "protocol/openai/completions/talk.hpp"

#include <string>
#include <string_view>

// The answers to HTTP clients that are refused.
namespace parley::net {

/// For a request that Beast could not parse.
http_reply unreadable(error_code why);

std::string_view words_for(refusal why);

/// In the format of Parley's own routes (docs/protocol.md 13). `words`: empty = the usual ones.
http_reply reply_to(refusal why, std::string_view words = {});

/// In the format of `POST /v1/chat/completions`.
http_reply completion_refusal(refusal why, std::string_view words = {});
http_reply completion_error(const protocol::openai_fault& fault);

/// 503 in OpenAI's words, for now. Connections that speak its Realtime API are refused so too: their clients take a refusal
/// after the upgrade for a broken connection, and come back at once.
http_reply server_busy(std::string why);

/// For the same where `openai.realtime` is off.
http_reply realtime_off();

} // namespace parley::net
