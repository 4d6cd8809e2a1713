#include "net/stream.hpp"

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace parley::net {

stream::stream(tcp::socket&& socket) : tcp_(std::make_unique<beast::tcp_stream>(std::move(socket))) {}
stream::stream(stream&&) noexcept = default;
stream& stream::operator=(stream&&) noexcept = default;
stream::~stream() = default;

void stream::hold_little_unsent() {
  const int bytes = 64 << 10;
  ::setsockopt(tcp_->socket().native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

void stream::async_secure(asio::ssl::context& context, handler<> done, asio::ssl::stream_base::handshake_type as) {
  tls_ = std::make_unique<tls_stream>(*tcp_, context);
  tls_->async_handshake(as, asio::bind_executor(get_executor(), std::move(done)));
}

void stream::async_secure_as_client(asio::ssl::context& context, const std::string& server, handler<> done) {
  tls_ = std::make_unique<tls_stream>(*tcp_, context);
  error_code no_address;
  asio::ip::make_address(server, no_address);
  if (no_address) SSL_set_tlsext_host_name(tls_->native_handle(), server.c_str());
  tls_->set_verify_callback(asio::ssl::host_name_verification(server));
  tls_->async_handshake(asio::ssl::stream_base::client, asio::bind_executor(get_executor(), std::move(done)));
}

void stream::leave_tls() {
  tls_.reset();
}

std::string stream::certificate_fault() const {
  const long verdict = SSL_get_verify_result(tls_->native_handle());
  return verdict == X509_V_OK ? std::string() : X509_verify_cert_error_string(verdict);
}

void stream::async_shutdown(handler<> done) {
  tls_->async_shutdown(asio::bind_executor(get_executor(), std::move(done)));
}

void stream::read_some(buffer_list<asio::mutable_buffer> into, handler<std::size_t> done) {
  if (tls_) {
    tls_->async_read_some(into, asio::bind_executor(get_executor(), std::move(done)));
  } else {
    tcp_->async_read_some(into, asio::bind_executor(get_executor(), std::move(done)));
  }
}

void stream::write_some(buffer_list<asio::const_buffer> from, handler<std::size_t> done) {
  if (tls_) {
    tls_->async_write_some(from, asio::bind_executor(get_executor(), std::move(done)));
  } else {
    tcp_->async_write_some(from, asio::bind_executor(get_executor(), std::move(done)));
  }
}

void stream::tear_down(beast::role_type role, handler<> done) {
  using beast::websocket::async_teardown;
  if (tls_) {
    async_teardown(role, *tls_, asio::bind_executor(get_executor(), std::move(done)));
  } else {
    async_teardown(role, *tcp_, asio::bind_executor(get_executor(), std::move(done)));
  }
}

} // namespace parley::net
