#include "net/routes/refusals.hpp"

#include <string>
#include <utility>

namespace parley::net {

http_reply unreadable(error_code why) {
  if (why == http::error::header_limit || why == http::error::buffer_overflow)
    return error_reply(431, "headers_too_large", "the request headers are too large");
  if (why == http::error::body_limit) return error_reply(413, "body_too_large", "the request body is too large");
  return error_reply(400, "bad_request", "this is not an HTTP/1.1 request");
}

std::string_view words_for(refusal why) {
  switch (why) {
  case refusal::key: return "this server requires an API key, and this is not one of its keys";
  case refusal::origin: return "pages of this origin may not use this server";
  case refusal::sessions: return "too many sessions are open for this client";
  case refusal::rate: return "too many sessions were started within a minute";
  case refusal::quota: return "this API key has used up what it may";
  }
  return "";
}

http_reply reply_to(refusal why, std::string_view words) {
  if (words.empty()) words = words_for(why);
  switch (why) {
  case refusal::key: return error_reply(401, "unauthorized", words);
  case refusal::origin: return error_reply(403, "forbidden_origin", words);
  case refusal::quota: return error_reply(429, "quota_exceeded", words);
  case refusal::sessions:
  case refusal::rate: break;
  }
  return error_reply(429, "too_many_sessions", words);
}

http_reply completion_refusal(refusal why, std::string_view more) {
  const std::string words(more.empty() ? words_for(why) : more);
  switch (why) {
  case refusal::key: return completion_error({401, "invalid_api_key", words});
  case refusal::origin: return completion_error({403, "forbidden_origin", words});
  case refusal::quota: return completion_error({429, std::string(protocol::out_of_quota), words});
  case refusal::sessions:
  case refusal::rate: break;
  }
  return completion_error({429, "too_many_sessions", words});
}

http_reply completion_error(const protocol::openai_fault& fault) {
  return {fault.status, protocol::encode_openai_error(fault)};
}

http_reply server_busy(std::string why) {
  auto reply = completion_error({503, "server_busy", std::move(why)});
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

http_reply realtime_off() {
  return completion_error({404, "not_found", "this server does not speak OpenAI's Realtime and Live APIs"});
}

} // namespace parley::net
