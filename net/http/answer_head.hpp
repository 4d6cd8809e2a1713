#pragma once

#include "net/beast.hpp"
#include "net/routes/http_message.hpp"

#include <cstdint>
#include <optional>
#include <string>

// The one head of all HTTP answers but the upgrade's, whichever class writes them.
namespace parley::net {

/// What the head of an answer depends on besides the answer: its request, and whether its connection goes on.
struct answer_terms {
  bool http_1_0 = false;       ///< of the client: it knows no chunks, and closes unless told otherwise
  bool keep_alive = false;     ///< the connection goes on after the answer
  std::string page{};          ///< Origin of a page elsewhere that may read the answer; empty = none
  std::string asked_headers{}; ///< Access-Control-Request-Headers of its preflight
  std::string traceparent{};   ///< of the trace that the request belongs to; empty = none
};

/// `length`: of the body; none = the answer is a stream of events of unknown length, in chunks, or for HTTP/1.0 up to the
/// end of the connection. Proxies are told to pass such an answer on piece by piece.
http::response_header<> head_of(const http_reply& reply, const answer_terms& terms,
                                std::optional<std::uint64_t> length);

/// As it is written, with the empty line behind it.
std::string written(const http::response_header<>& head);

/// Whether an answer of that kind, streamed, comes in chunks.
inline bool in_chunks(const answer_terms& terms) {
  return !terms.http_1_0;
}

} // namespace parley::net
