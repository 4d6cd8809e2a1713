#pragma once

#include "net/beast.hpp"

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream_base.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace parley::net {

/// The bytes of one connection, plain or through TLS; either way a stream for Beast. The layers below are compiled
/// once, in stream.cpp, not again for every operation that reads or writes: handlers are type-erased on the way down
/// (Asio recycles their memory as usual). Move-only. All calls must be on its executor.
class stream {
public:
  using executor_type = beast::tcp_stream::executor_type;
  template<class... Result>
  using handler = asio::any_completion_handler<void(error_code, Result...)>;

  explicit stream(tcp::socket&& socket);
  stream(stream&&) noexcept;
  stream& operator=(stream&&) noexcept;
  ~stream();

  executor_type get_executor() noexcept { return tcp_->get_executor(); }

  /// The layer below TLS: the socket and its deadline.
  beast::tcp_stream& plain() { return *tcp_; }

  /// Limits, as far as possible, how many unsent bytes the system accepts. Then the end of a write shows how fast the
  /// other side reads, not how large a buffer is.
  void hold_little_unsent();

  bool secure() const { return tls_ != nullptr; }

  /// Starts TLS, by default as the server of the handshake.
  void async_secure(asio::ssl::context& context, handler<> done,
                    asio::ssl::stream_base::handshake_type as = asio::ssl::stream_base::server);

  /// After a handshake that has failed: what follows is plain.
  void leave_tls();

  /// Starts TLS as a client that asks for `server` (a host name or an address) and accepts only its certificate.
  void async_secure_as_client(asio::ssl::context& context, const std::string& server, handler<> done);

  /// Why the other side's certificate was refused; empty if it was not. Only after TLS has started.
  std::string certificate_fault() const;

  /// Sends the closing message of TLS; only after TLS has started.
  void async_shutdown(handler<> done);

  template<class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
        [this](auto done, const Buffers& into) { read_some(first_of<asio::mutable_buffer>(into), std::move(done)); },
        token, buffers);
  }

  template<class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return asio::async_initiate<Token, void(error_code, std::size_t)>(
        [this](auto done, const Buffers& from) { write_some(first_of<asio::const_buffer>(from), std::move(done)); },
        token, buffers);
  }

  // Required by Beast's WebSocket for a custom stream.

  friend void beast_close_socket(stream& of) { of.tcp_->close(); }

  template<class Handler>
  friend void async_teardown(beast::role_type role, stream& of, Handler&& done) {
    of.tear_down(role, std::forward<Handler>(done));
  }

private:
  using tls_stream = asio::ssl::stream<beast::tcp_stream&>;

  /// A sequence of buffers of a single type, whatever type the caller uses. An operation that transfers "some" may
  /// leave out the rest.
  template<class Buffer>
  class buffer_list {
  public:
    using value_type = Buffer;
    using const_iterator = const Buffer*;

    const_iterator begin() const { return items_.data(); }
    const_iterator end() const { return items_.data() + count_; }
    bool full() const { return count_ == items_.size(); }
    void push_back(Buffer item) { items_[count_++] = item; }

  private:
    std::array<Buffer, 8> items_;
    std::size_t count_ = 0;
  };

  template<class Buffer, class Buffers>
  static buffer_list<Buffer> first_of(const Buffers& buffers) {
    buffer_list<Buffer> out;
    for (auto at = asio::buffer_sequence_begin(buffers); at != asio::buffer_sequence_end(buffers) && !out.full();
         ++at) {
      const Buffer item = *at;
      if (item.size() > 0) out.push_back(item);
    }
    return out;
  }

  void read_some(buffer_list<asio::mutable_buffer> into, handler<std::size_t> done);
  void write_some(buffer_list<asio::const_buffer> from, handler<std::size_t> done);
  void tear_down(beast::role_type role, handler<> done);

  std::unique_ptr<beast::tcp_stream> tcp_;
  std::unique_ptr<tls_stream> tls_;
};

} // namespace parley::net
