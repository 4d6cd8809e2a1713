#include "net/access/origin.hpp"
#include "net/subprotocol.hpp"
#include "net/target.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>

namespace http = boost::beast::http;
using namespace parley::net;

namespace {

std::string_view view(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

} // namespace

// A request as it arrives on a socket, and everything read from its head before the client is admitted.
void parley::test::fuzz(std::string_view bytes) {
  http::request_parser<http::string_body> parser;
  parser.header_limit(16u << 10);
  parser.body_limit(64u << 10);
  parser.eager(true);
  boost::system::error_code ec;
  while (!bytes.empty() && !parser.is_done()) {
    const auto taken = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
    if (ec || taken == 0) break;
    bytes.remove_prefix(taken);
  }
  if (!parser.is_header_done()) return;
  const auto& request = parser.get();
  const auto target = split_target(view(request.target()));
  static_cast<void>(percent_decode(target.path));
  const auto protocols = view(request[http::field::sec_websocket_protocol]);
  static_cast<void>(choose_subprotocol(protocols));
  const auto key = offered_key(view(request[http::field::authorization]), protocols, target.query);
  expect(!key || key->size() <= 16u << 10, "a key is no longer than the head of its request");
  static_cast<void>(query_value(target.query, "mode"));
  const auto origin = view(request[http::field::origin]);
  const auto host = view(request[http::field::host]);
  static const server_names names("192.0.2.7", "talk.example");
  const bool among_names = origin_allowed("https://example.org", origin, host, &names);
  expect(!among_names || origin_allowed("https://example.org", origin, host, nullptr),
         "names only narrow what is allowed");
}
