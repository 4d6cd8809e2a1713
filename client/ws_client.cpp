#include "client/ws_client.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <chrono>
#include <deque>
#include <type_traits>
#include <utility>

namespace parley::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::chrono::seconds handshake_time{30};
constexpr std::size_t write_buffer_bytes = 32u << 10; ///< masked and written at a time
constexpr std::size_t most_message_bytes = 64u << 20; ///< a whole chat answer with its sound

} // namespace

class ws_client::impl {
public:
  virtual ~impl() = default;
  virtual void connect(const server_url& url, std::string_view mode) = 0;
  virtual void send(std::shared_ptr<const std::string> frame) = 0;
  virtual void close() = 0;
  virtual void cut() = 0;
};

namespace {

/// One connection, over plain TCP or over TLS.
template<class Stream>
class connection final : public ws_client::impl, public std::enable_shared_from_this<connection<Stream>> {
public:
  using callbacks = ws_client::callbacks;
  static constexpr bool secure = !std::is_same_v<Stream, beast::tcp_stream>;

  /// `context` only with TLS.
  template<class... Context>
  connection(asio::any_io_executor executor, callbacks told, Context&... context)
      : resolver_(executor), ws_(executor, context...), told_(std::move(told)) {
    ws_.read_message_max(most_message_bytes);
    ws_.auto_fragment(false);
    ws_.text(true);
    ws_.write_buffer_bytes(write_buffer_bytes);
    auto timeouts = websocket::stream_base::timeout::suggested(beast::role_type::client);
    timeouts.handshake_timeout = handshake_time;
    ws_.set_option(timeouts);
  }

  void connect(const server_url& url, std::string_view mode) override {
    name_ = url.host;
    host_ = (url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]") + ":" + url.port;
    target_ = url.path + "?mode=" + std::string(mode);
    if (!url.key.empty())
      ws_.set_option(websocket::stream_base::decorator([key = url.key](websocket::request_type& request) {
        request.set(beast::http::field::authorization, "Bearer " + key);
      }));
    resolver_.async_resolve(url.host, url.port, [self = this->shared_from_this()](error_code ec, const auto& found) {
      if (ec) return self->end("cannot resolve " + self->host_, ec);
      auto& stream = beast::get_lowest_layer(self->ws_);
      stream.expires_after(handshake_time);
      stream.async_connect(found, [self](error_code ec, const tcp::endpoint&) { self->on_connect(ec); });
    });
  }

  void send(std::shared_ptr<const std::string> frame) override {
    if (closing_ || ended_) return;
    waiting_.push_back(std::move(frame));
    write();
  }

  void close() override {
    closing_ = true;
    write();
  }

  void cut() override {
    ended_ = true;
    told_ = {};
    resolver_.cancel();
    beast::get_lowest_layer(ws_).close();
  }

private:
  void on_connect(error_code ec) {
    if (ended_) return;
    if (ec) return end("cannot connect to " + host_, ec);
    error_code ignored;
    auto& stream = beast::get_lowest_layer(ws_);
    stream.socket().set_option(tcp::no_delay(true), ignored);
    if constexpr (secure) {
      secure_connection();
    } else {
      open();
    }
  }

  void secure_connection() requires secure {
    auto& tls = ws_.next_layer();
    error_code no_name;
    asio::ip::make_address(name_, no_name);
    if (no_name) SSL_set_tlsext_host_name(tls.native_handle(), name_.c_str());
    tls.set_verify_callback(asio::ssl::host_name_verification(name_));
    tls.async_handshake(asio::ssl::stream_base::client, [self = this->shared_from_this()](error_code ec) {
      if (self->ended_) return;
      if (!ec) return self->open();
      const long verdict = SSL_get_verify_result(self->ws_.next_layer().native_handle());
      if (verdict == X509_V_OK) return self->end("no TLS with " + self->host_, ec);
      self->end("the certificate of " + self->host_ + " is refused: " + X509_verify_cert_error_string(verdict), {});
    });
  }

  void open() {
    beast::get_lowest_layer(ws_).expires_never();
    ws_.async_handshake(response_, host_, target_,
                        [self = this->shared_from_this()](error_code ec) { self->on_open(ec); });
  }

  void on_open(error_code ec) {
    if (ended_) return;
    if (ec == websocket::error::upgrade_declined)
      return end(host_ + " answered HTTP " + std::to_string(response_.result_int()) + " instead of a WebSocket", {});
    if (ec) return end("no WebSocket at " + host_, ec);
    open_ = true;
    if (told_.opened) told_.opened();
    read();
    write();
  }

  void read() {
    if (ended_) return;
    ws_.async_read(buffer_, [self = this->shared_from_this()](error_code ec, std::size_t) { self->on_read(ec); });
  }

  void on_read(error_code ec) {
    if (ended_) return;
    if (ec == websocket::error::closed) return end({}, {});
    if (ec) return end("the connection broke", ec);
    const auto bytes = buffer_.cdata();
    if (told_.text) told_.text({static_cast<const char*>(bytes.data()), bytes.size()});
    buffer_.consume(buffer_.size());
    read();
  }

  void write() {
    if (writing_ || !open_ || ended_) return;
    writing_ = true;
    if (waiting_.empty()) {
      if (!closing_ || !ws_.is_open()) {
        writing_ = false;
        return;
      }
      // The pending read tells how it ended.
      ws_.async_close(websocket::close_code::normal, [self = this->shared_from_this()](error_code ec) {
        if (!self->ended_) self->end(ec ? "the closing handshake failed" : "", ec);
      });
      return;
    }
    ws_.async_write(asio::buffer(*waiting_.front()), [self = this->shared_from_this()](error_code ec, std::size_t) {
      self->writing_ = false;
      self->waiting_.pop_front();
      if (!ec) self->write(); // a broken connection is told by the read
    });
  }

  void end(std::string what, error_code why) {
    if (std::exchange(ended_, true)) return;
    ws_client::ending how{static_cast<std::uint16_t>(ws_.reason().code), std::move(what)};
    if (why) how.error += ": " + why.message();
    beast::get_lowest_layer(ws_).close();
    const callbacks told = std::exchange(told_, {});
    if (told.ended) told.ended(how);
  }

  tcp::resolver resolver_;
  websocket::stream<Stream, false> ws_;
  callbacks told_;
  beast::flat_buffer buffer_;
  websocket::response_type response_;
  std::deque<std::shared_ptr<const std::string>> waiting_;
  std::string name_; ///< of the server
  std::string host_; ///< with the port
  std::string target_;
  bool open_ = false;
  bool writing_ = false;
  bool closing_ = false;
  bool ended_ = false;
};

} // namespace

ws_client::ws_client(asio::any_io_executor executor, callbacks told)
    : executor_(std::move(executor)), told_(std::move(told)) {}

ws_client::~ws_client() {
  if (impl_) impl_->cut();
}

void ws_client::connect(const server_url& url, std::string_view mode) {
  if (!url.secure) {
    impl_ = std::make_shared<connection<beast::tcp_stream>>(executor_, std::move(told_));
    return impl_->connect(url, mode);
  }
  tls_ = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
  tls_->set_verify_mode(asio::ssl::verify_peer);
  error_code ec;
  if (url.ca_file.empty()) {
    tls_->set_default_verify_paths(ec);
  } else {
    tls_->load_verify_file(url.ca_file, ec);
  }
  if (ec) {
    asio::post(executor_, [ended = std::move(told_.ended), why = url.ca_file + ": " + ec.message()] {
      if (ended) ended({0, why});
    });
    return;
  }
  impl_ = std::make_shared<connection<asio::ssl::stream<beast::tcp_stream>>>(executor_, std::move(told_), *tls_);
  impl_->connect(url, mode);
}
void ws_client::send(std::string frame) {
  send(std::make_shared<const std::string>(std::move(frame)));
}

void ws_client::send(std::shared_ptr<const std::string> frame) {
  if (impl_) impl_->send(std::move(frame));
}
void ws_client::close() {
  if (impl_) impl_->close();
}

} // namespace parley::client
