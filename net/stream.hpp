#pragma once

#include "net/beast.hpp"

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <memory>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <utility>

namespace parley::net {

/// The bytes of one connection, plain or through TLS: a stream for Beast either way, so that what speaks HTTP and
/// WebSocket over it is compiled once. Moves only. All calls are on its executor.
class stream {
public:
  using executor_type = beast::tcp_stream::executor_type;

  explicit stream(tcp::socket&& socket) : tcp_(std::make_unique<beast::tcp_stream>(std::move(socket))) {}

  executor_type get_executor() noexcept { return tcp_->get_executor(); }

  /// What is below TLS: the socket and its deadline.
  beast::tcp_stream& plain() { return *tcp_; }

  /// Lets the system take at most so many bytes ahead of the reader, as far as it can: then a write that ends tells
  /// how fast the other side reads, and not how large a buffer is.
  void hold_little_unsent() {
    const int bytes = 64 << 10;
    ::setsockopt(tcp_->socket().native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
  }

  bool secure() const { return tls_ != nullptr; }

  /// TLS from now on, by default as the server of the handshake. `done` takes an error code.
  template<class Handler>
  void async_secure(asio::ssl::context& context, Handler&& done,
                    asio::ssl::stream_base::handshake_type as = asio::ssl::stream_base::server) {
    tls_ = std::make_unique<tls_stream>(*tcp_, context);
    tls_->async_handshake(as, std::forward<Handler>(done));
  }

  /// The goodbye of TLS; only while secure.
  template<class Handler>
  void async_shutdown(Handler&& done) {
    tls_->async_shutdown(std::forward<Handler>(done));
  }

  template<class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
        [this](auto handler, const Buffers& into) {
          if (tls_) {
            tls_->async_read_some(into, std::move(handler));
          } else {
            tcp_->async_read_some(into, std::move(handler));
          }
        },
        token, buffers);
  }

  template<class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
        [this](auto handler, const Buffers& from) {
          if (tls_) {
            tls_->async_write_some(from, std::move(handler));
          } else {
            tcp_->async_write_some(from, std::move(handler));
          }
        },
        token, buffers);
  }

  // What Beast's WebSocket asks of a stream of one's own.

  friend void beast_close_socket(stream& of) { of.tcp_->close(); }

  template<class Handler>
  friend void async_teardown(beast::role_type role, stream& of, Handler&& done) {
    using beast::websocket::async_teardown;
    if (of.tls_) {
      async_teardown(role, *of.tls_, std::forward<Handler>(done));
    } else {
      async_teardown(role, *of.tcp_, std::forward<Handler>(done));
    }
  }

private:
  using tls_stream = asio::ssl::stream<beast::tcp_stream&>;

  std::unique_ptr<beast::tcp_stream> tcp_;
  std::unique_ptr<tls_stream> tls_;
};

} // namespace parley::net
