#include "client/ws_client.hpp"

#include "client/printable.hpp"
#include "net/stream.hpp"

#include <boost/asio/post.hpp>

#include <chrono>
#include <deque>
#include <utility>

namespace parley::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = boost::beast::websocket;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::chrono::seconds handshake_time{30};
constexpr std::size_t write_buffer_bytes = 32u << 10; ///< frames are masked and written in pieces of this size
constexpr std::size_t most_refusal_bytes = 1000;      ///< of a refusal's body that are told
constexpr std::size_t most_message_bytes = 64u << 20; ///< enough for a whole chat answer with its sound

} // namespace

/// One connection, over plain TCP or over TLS.
class ws_client::impl : public std::enable_shared_from_this<impl> {
public:
  /// `tls` null = plain TCP.
  impl(const asio::any_io_executor& executor, callbacks told, std::shared_ptr<asio::ssl::context> tls)
      : tls_(std::move(tls)), resolver_(executor), ws_(net::stream(tcp::socket(executor))), told_(std::move(told)) {
    ws_.read_message_max(most_message_bytes);
    ws_.auto_fragment(false);
    ws_.text(true);
    ws_.write_buffer_bytes(write_buffer_bytes);
    auto timeouts = websocket::stream_base::timeout::suggested(beast::role_type::client);
    timeouts.handshake_timeout = handshake_time;
    ws_.set_option(timeouts);
  }

  void connect(const server_url& url, std::string_view query) {
    name_ = url.host;
    host_ = (url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]") + ":" + url.port;
    target_ = url.path + "?" + std::string(query);
    if (!url.key.empty())
      ws_.set_option(websocket::stream_base::decorator([key = url.key](websocket::request_type& request) {
        request.set(beast::http::field::authorization, "Bearer " + key);
      }));
    resolver_.async_resolve(url.host, url.port, [self = shared_from_this()](error_code ec, const auto& found) {
      if (ec) return self->end("cannot resolve " + self->host_, ec);
      auto& stream = self->ws_.next_layer().plain();
      stream.expires_after(handshake_time);
      stream.async_connect(found, [self](error_code ec, const tcp::endpoint&) { self->on_connect(ec); });
    });
  }

  void send(std::shared_ptr<const std::string> frame) {
    if (closing_ || ended_) return;
    waiting_.push_back(std::move(frame));
    write();
  }

  void close() {
    closing_ = true;
    write();
  }

  void cut() {
    ended_ = true;
    told_ = {};
    resolver_.cancel();
    ws_.next_layer().plain().close();
  }

private:
  void on_connect(error_code ec) {
    if (ended_) return;
    if (ec) return end("cannot connect to " + host_, ec);
    error_code ignored;
    auto& stream = ws_.next_layer().plain();
    stream.socket().set_option(tcp::no_delay(true), ignored);
    if (!tls_) return open();
    ws_.next_layer().async_secure_as_client(*tls_, name_, [self = shared_from_this()](error_code ec) {
      if (self->ended_) return;
      if (!ec) return self->open();
      const std::string refused = self->ws_.next_layer().certificate_fault();
      if (refused.empty()) return self->end("no TLS with " + self->host_, ec);
      self->end("the certificate of " + self->host_ + " is refused: " + refused, {});
    });
  }

  void open() {
    ws_.next_layer().plain().expires_never();
    ws_.async_handshake(response_, host_, target_, [self = shared_from_this()](error_code ec) { self->on_open(ec); });
  }

  void on_open(error_code ec) {
    if (ended_) return;
    if (ec == websocket::error::upgrade_declined) return end(refusal(), {});
    if (ec) return end("no WebSocket at " + host_, ec);
    open_ = true;
    if (told_.opened) told_.opened();
    read();
    write();
  }

  /// What the server answered instead of a WebSocket.
  std::string refusal() const {
    std::string what = host_ + " answered HTTP " + std::to_string(response_.result_int()) + " instead of a WebSocket";
    const std::string_view body = std::string_view(response_.body()).substr(0, most_refusal_bytes);
    constexpr std::string_view blanks = " \t\r\n";
    const auto from = body.find_first_not_of(blanks);
    if (from == std::string_view::npos) return what;
    return what + ": " + printable_line(body.substr(from, body.find_last_not_of(blanks) + 1 - from));
  }

  /// Reads piece by piece: Beast's own loop over the pieces of a message goes wrong if a close under way drops the rest.
  void read() {
    if (ended_ || shaking_hands_) return;
    ws_.async_read_some(buffer_, 0, [self = shared_from_this()](error_code ec, std::size_t) { self->on_read(ec); });
  }

  void on_read(error_code ec) {
    if (ended_) return;
    if (ec == websocket::error::closed) return end({}, {});
    if (shaking_hands_) return; // the close reads on, and reports how it ended
    if (ec) return end("the connection broke", ec);
    if (!ws_.is_message_done()) return read();
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
      shaking_hands_ = true;
      ws_.async_close(websocket::close_code::normal, [self = shared_from_this()](error_code ec) {
        if (!self->ended_) self->end(ec ? "the closing handshake failed" : "", ec);
      });
      return;
    }
    ws_.async_write(asio::buffer(*waiting_.front()), [self = shared_from_this()](error_code ec, std::size_t) {
      self->writing_ = false;
      self->waiting_.pop_front();
      if (!ec) self->write(); // the pending read reports a broken connection
    });
  }

  void end(std::string what, error_code why) {
    if (std::exchange(ended_, true)) return;
    ws_client::ending how{static_cast<std::uint16_t>(ws_.reason().code), std::move(what)};
    if (why) how.error += ": " + why.message();
    ws_.next_layer().plain().close();
    // Beast's timer of the handshake runs on after a refusal, and with it the io_context.
    ws_.set_option(
        websocket::stream_base::timeout{websocket::stream_base::none(), websocket::stream_base::none(), false});
    const callbacks told = std::exchange(told_, {});
    if (told.ended) told.ended(how);
  }

  std::shared_ptr<asio::ssl::context> tls_; ///< null = plain TCP
  tcp::resolver resolver_;
  websocket::stream<net::stream, false> ws_;
  callbacks told_;
  beast::flat_buffer buffer_;
  websocket::response_type response_;
  std::deque<std::shared_ptr<const std::string>> waiting_;
  std::string name_; ///< host name of the server
  std::string host_; ///< host name with the port
  std::string target_;
  bool open_ = false;
  bool writing_ = false;
  bool closing_ = false;
  bool shaking_hands_ = false; ///< nothing else may be asked of the stream
  bool ended_ = false;
};

ws_client::ws_client(asio::any_io_executor executor, callbacks told)
    : executor_(std::move(executor)), told_(std::move(told)) {}

ws_client::~ws_client() {
  if (impl_) impl_->cut();
}

void ws_client::connect(const server_url& url, std::string_view query) {
  std::shared_ptr<asio::ssl::context> tls;
  if (url.secure) {
    tls = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_client);
    tls->set_verify_mode(asio::ssl::verify_peer);
    error_code ec;
    if (url.ca_file.empty()) {
      tls->set_default_verify_paths(ec);
    } else {
      tls->load_verify_file(url.ca_file, ec);
    }
    if (ec) {
      asio::post(executor_, [ended = std::move(told_.ended), why = url.ca_file + ": " + ec.message()] {
        if (ended) ended({0, why});
      });
      return;
    }
  }
  impl_ = std::make_shared<impl>(executor_, std::move(told_), std::move(tls));
  impl_->connect(url, query);
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
