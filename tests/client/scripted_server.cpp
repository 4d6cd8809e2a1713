#include "tests/client/scripted_server.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>

#include <exception>
#include <thread>
#include <utility>

namespace parley::client {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = asio::ip::tcp;

class beast_peer final : public scripted_server::peer {
public:
  explicit beast_peer(tcp::socket socket) : ws_(std::move(socket)) {
    beast::flat_buffer buffer;
    beast::http::request<beast::http::string_body> upgrade;
    beast::http::read(ws_.next_layer(), buffer, upgrade);
    target_ = upgrade.target();
    ws_.read_message_max(64u << 20);
    ws_.accept(upgrade);
  }

  ~beast_peer() override {
    boost::system::error_code ignored;
    if (ws_.is_open()) ws_.close(beast::websocket::close_code::normal, ignored);
  }

  std::string target() const override { return target_; }
  void send(std::string_view frame) override { ws_.write(asio::buffer(frame)); }

  std::optional<std::string> receive() override {
    beast::flat_buffer buffer;
    boost::system::error_code ec;
    ws_.read(buffer, ec);
    if (ec) return std::nullopt;
    return beast::buffers_to_string(buffer.data());
  }

  void close(std::uint16_t code) override { ws_.close(static_cast<beast::websocket::close_code>(code)); }
  void vanish() override { ws_.next_layer().close(); }

private:
  beast::websocket::stream<tcp::socket> ws_;
  std::string target_;
};

} // namespace

class scripted_server::impl {
public:
  explicit impl(std::vector<script> scripts)
      : acceptor_(io_, {asio::ip::make_address_v4("127.0.0.1"), 0}),
        thread_([this, scripts = std::move(scripts)] { play(scripts); }) {}

  ~impl() { thread_.join(); }

  std::uint16_t port() const { return port_; }

  std::exception_ptr wait() {
    thread_.join();
    thread_ = std::thread([] {});
    return failure_;
  }

private:
  void play(const std::vector<script>& scripts) try {
    for (const auto& each : scripts) {
      beast_peer with(acceptor_.accept());
      each(with);
    }
  } catch (...) {
    failure_ = std::current_exception();
  }

  asio::io_context io_;
  tcp::acceptor acceptor_;
  const std::uint16_t port_ = acceptor_.local_endpoint().port();
  std::exception_ptr failure_;
  std::thread thread_;
};

scripted_server::scripted_server(std::vector<script> scripts) : impl_(std::make_unique<impl>(std::move(scripts))) {}

scripted_server::~scripted_server() noexcept(false) {
  if (const auto failure = impl_->wait(); failure && std::uncaught_exceptions() == 0) std::rethrow_exception(failure);
}

std::string scripted_server::url() const {
  return "http://127.0.0.1:" + std::to_string(impl_->port());
}

} // namespace parley::client
