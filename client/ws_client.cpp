#include "client/ws_client.hpp"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/websocket.hpp>

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
constexpr std::size_t most_message_bytes = 64u << 20; ///< a whole chat answer with its sound

} // namespace

class ws_client::impl : public std::enable_shared_from_this<impl> {
public:
  impl(asio::any_io_executor executor, callbacks told) : resolver_(executor), ws_(executor), told_(std::move(told)) {
    ws_.read_message_max(most_message_bytes);
    ws_.auto_fragment(false);
    ws_.text(true);
    auto timeouts = websocket::stream_base::timeout::suggested(beast::role_type::client);
    timeouts.handshake_timeout = handshake_time;
    ws_.set_option(timeouts);
  }

  void connect(const server_url& url, std::string_view mode) {
    host_ = (url.host.find(':') == std::string::npos ? url.host : "[" + url.host + "]") + ":" + url.port;
    target_ = url.path + "?mode=" + std::string(mode);
    resolver_.async_resolve(url.host, url.port, [self = shared_from_this()](error_code ec, auto found) {
      if (ec) return self->end("cannot resolve " + self->host_, ec);
      auto& stream = beast::get_lowest_layer(self->ws_);
      stream.expires_after(handshake_time);
      stream.async_connect(found, [self](error_code ec, const tcp::endpoint&) { self->on_connect(ec); });
    });
  }

  void send(std::string frame) {
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
    beast::get_lowest_layer(ws_).close();
  }

private:
  void on_connect(error_code ec) {
    if (ended_) return;
    if (ec) return end("cannot connect to " + host_, ec);
    error_code ignored;
    auto& stream = beast::get_lowest_layer(ws_);
    stream.socket().set_option(tcp::no_delay(true), ignored);
    stream.expires_never();
    ws_.async_handshake(response_, host_, target_, [self = shared_from_this()](error_code ec) { self->on_open(ec); });
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
    ws_.async_read(buffer_, [self = shared_from_this()](error_code ec, std::size_t) { self->on_read(ec); });
  }

  void on_read(error_code ec) {
    if (ended_) return;
    if (ec == websocket::error::closed) return end({}, {});
    if (ec) return end("the connection broke", ec);
    std::string text = beast::buffers_to_string(buffer_.data());
    buffer_.consume(buffer_.size());
    if (told_.text) told_.text(std::move(text));
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
      ws_.async_close(websocket::close_code::normal, [self = shared_from_this()](error_code ec) {
        if (!self->ended_) self->end(ec ? "the closing handshake failed" : "", ec);
      });
      return;
    }
    ws_.async_write(asio::buffer(waiting_.front()), [self = shared_from_this()](error_code ec, std::size_t) {
      self->writing_ = false;
      self->waiting_.pop_front();
      if (!ec) self->write(); // a broken connection is told by the read
    });
  }

  void end(std::string what, error_code why) {
    if (std::exchange(ended_, true)) return;
    ending how{static_cast<std::uint16_t>(ws_.reason().code), std::move(what)};
    if (why) how.error += ": " + why.message();
    beast::get_lowest_layer(ws_).close();
    const callbacks told = std::exchange(told_, {});
    if (told.ended) told.ended(how);
  }

  tcp::resolver resolver_;
  websocket::stream<beast::tcp_stream, false> ws_;
  callbacks told_;
  beast::flat_buffer buffer_;
  websocket::response_type response_;
  std::deque<std::string> waiting_;
  std::string host_;
  std::string target_;
  bool open_ = false;
  bool writing_ = false;
  bool closing_ = false;
  bool ended_ = false;
};

ws_client::ws_client(asio::any_io_executor executor, callbacks told)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(told))) {}

ws_client::~ws_client() {
  impl_->cut();
}

void ws_client::connect(const server_url& url, std::string_view mode) {
  impl_->connect(url, mode);
}
void ws_client::send(std::string frame) {
  impl_->send(std::move(frame));
}
void ws_client::close() {
  impl_->close();
}

} // namespace parley::client
