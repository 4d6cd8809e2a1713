#include "net/websocket/websocket_stream.hpp"

#include <boost/asio/bind_executor.hpp>

#include <algorithm>
#include <utility>

namespace parley::net {
namespace {

/// A close reason has at most 123 bytes; it must not end within a character.
websocket::close_reason close_reason_of(unsigned code, std::string_view reason) {
  constexpr std::size_t most = 123;
  std::size_t size = std::min(reason.size(), most);
  while (size < reason.size() && size > 0 && (static_cast<unsigned char>(reason[size]) & 0xC0) == 0x80) --size;
  return {static_cast<websocket::close_code>(code), reason.substr(0, size)};
}

} // namespace

class websocket_stream::beast_stream : public websocket::stream<net::stream, false> {
public:
  using websocket::stream<net::stream, false>::stream;

  /// Binds `done` to our executor: that of an erased handler lacks a property that Beast asks for.
  template<class... Result>
  auto here(handler<Result...> done) {
    return asio::bind_executor(get_executor(), std::move(done));
  }
};

websocket_stream::websocket_stream(stream&& from) : ws_(std::make_unique<beast_stream>(std::move(from))) {
  ws_->auto_fragment(false);
  ws_->text(true);
}

websocket_stream::~websocket_stream() = default;

asio::any_io_executor websocket_stream::get_executor() {
  return ws_->get_executor();
}

beast::tcp_stream& websocket_stream::plain() {
  return ws_->next_layer().plain();
}

void websocket_stream::read_message_max(std::size_t bytes) {
  ws_->read_message_max(bytes);
}

void websocket_stream::on_control(std::function<void(websocket::frame_type)> call) {
  ws_->control_callback([call = std::move(call)](websocket::frame_type kind, beast::string_view) { call(kind); });
}

void websocket_stream::async_accept(const http::request<http::string_body>& upgrade,
                                    const std::optional<std::string>& subprotocol, const std::string& traceparent,
                                    handler<> done) {
  // async_accept calls the decorator before it returns.
  ws_->set_option(websocket::stream_base::decorator([&](websocket::response_type& response) {
    response.set(http::field::server, "parley");
    if (subprotocol) response.set(http::field::sec_websocket_protocol, *subprotocol);
    if (!traceparent.empty()) response.set("traceparent", traceparent);
  }));
  ws_->async_accept(upgrade, ws_->here(std::move(done)));
  ws_->set_option(websocket::stream_base::decorator([](websocket::response_type&) {}));
}

bool websocket_stream::is_open() const {
  return ws_->is_open();
}

void websocket_stream::async_read_some(std::span<char> room, handler<std::size_t> done) {
  ws_->async_read_some(asio::buffer(room.data(), room.size()), ws_->here(std::move(done)));
}

std::size_t websocket_stream::read_size_hint() const {
  return ws_->read_size_hint(1);
}

bool websocket_stream::is_message_done() const {
  return ws_->is_message_done();
}

bool websocket_stream::got_binary() const {
  return ws_->got_binary();
}

void websocket_stream::async_write(std::string_view text, handler<std::size_t> done) {
  ws_->async_write(asio::buffer(text.data(), text.size()), ws_->here(std::move(done)));
}

void websocket_stream::async_ping(handler<> done) {
  ws_->async_ping({}, ws_->here(std::move(done)));
}

void websocket_stream::async_close(unsigned code, std::string_view reason, handler<> done) {
  ws_->async_close(close_reason_of(code, reason), ws_->here(std::move(done)));
}

} // namespace parley::net
