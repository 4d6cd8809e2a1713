#include "tests/client/refusing_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/streambuf.hpp>
#include <boost/asio/write.hpp>

#include <cstdint>
#include <thread>
#include <utility>

namespace parley::client {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;

/// One connection: reads a request, answers it, and again until the client leaves.
class refusal : public std::enable_shared_from_this<refusal> {
public:
  refusal(tcp::socket socket, const std::string& answer) : socket_(std::move(socket)), answer_(answer) {}

  void run() {
    asio::async_read_until(
        socket_, received_, "\r\n\r\n", [self = shared_from_this()](error_code ec, std::size_t bytes) {
          if (ec) return;
          self->received_.consume(bytes);
          asio::async_write(self->socket_, asio::buffer(self->answer_), [self](error_code failed, std::size_t) {
            if (!failed) self->run();
          });
        });
  }

private:
  tcp::socket socket_;
  asio::streambuf received_;
  const std::string& answer_;
};

} // namespace

class refusing_server::impl {
public:
  impl(const std::string& status, const std::string& body)
      : answer_("HTTP/1.1 " + status + "\r\nContent-Type: application/json\r\nContent-Length: " +
                std::to_string(body.size()) + "\r\n\r\n" + body),
        acceptor_(io_, {asio::ip::make_address_v4("127.0.0.1"), 0}), port_(acceptor_.local_endpoint().port()) {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }

  ~impl() {
    io_.stop();
    thread_.join();
  }

  std::uint16_t port() const { return port_; }

private:
  void accept() {
    acceptor_.async_accept([this](error_code ec, tcp::socket socket) {
      if (ec) return;
      std::make_shared<refusal>(std::move(socket), answer_)->run();
      accept();
    });
  }

  const std::string answer_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_;
  const std::uint16_t port_;
  std::thread thread_;
};

refusing_server::refusing_server(std::string status, std::string body) : impl_(std::make_unique<impl>(status, body)) {}
refusing_server::~refusing_server() = default;

std::string refusing_server::url() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port());
}

} // namespace parley::client
