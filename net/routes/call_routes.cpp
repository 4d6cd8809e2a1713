#include "net/routes/call_routes.hpp"

#include "net/routes/refusals.hpp"

#include <utility>

namespace parley::net {
namespace {

http_reply hang_up(call_acceptor& all, const http_request& request, const std::string& id) {
  if (!request.may.who) return completion_refusal(refusal::key);
  using enum call_acceptor::end_answer;
  switch (all.hang_up(id, *request.may.who)) {
  case ended: return {200, "{}"};
  case unknown: return completion_error({404, "call_not_found", "there is no such call", "call_id"});
  case forbidden: return completion_error({403, "forbidden", "this is the call of another API key"});
  }
  return {};
}

} // namespace

void add_call_routes(router& table, std::function<call_acceptor*()> all) {
  const auto now = [all = std::move(all)]() -> call_acceptor* { return all ? all() : nullptr; };
  table.add("POST", "/v1/realtime/calls", [](auto&, auto&, auto respond) {
    respond(completion_error({501, "not_implemented", "this server has no WebRTC: connect a WebSocket"}));
  });
  table.add("POST", "/v1/realtime/calls/{}/{}",
            [now](const http_request& request, const path_segments& in, auto respond) {
              auto* const there = now();
              if (there != nullptr && in[1] == "hangup") return respond(hang_up(*there, request, in[0]));
              respond(completion_error(
                  {501, "not_implemented", "this server has no SIP, so there is nothing to accept, reject or refer"}));
            });
}

} // namespace parley::net
