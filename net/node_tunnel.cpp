#include "net/node_tunnel.hpp"

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <memory>
#include <utility>

namespace parley::net {

namespace {

using local_socket = asio::local::stream_protocol::socket;

class tunnel final : public std::enable_shared_from_this<tunnel> {
public:
  tunnel(stream outside, local_socket inside) : outside_(std::move(outside)), inside_(std::move(inside)) {}

  void run() {
    carry(outside_, inside_, down_);
    carry(inside_, outside_, up_);
  }

private:
  using buffer = std::array<char, 64 * 1024>;

  /// One direction: the next read waits until what was read is written.
  template<class From, class To>
  void carry(From& from, To& to, buffer& bytes) {
    from.async_read_some(asio::buffer(bytes),
                         [this, self = shared_from_this(), &from, &to, &bytes](error_code ec, std::size_t size) {
                           if (ec) return end();
                           asio::async_write(to, asio::buffer(bytes.data(), size),
                                             [this, self, &from, &to, &bytes](error_code ec, std::size_t) {
                                               if (ec) return end();
                                               carry(from, to, bytes);
                                             });
                         });
  }

  void end() {
    error_code ignored;
    inside_.close(ignored);
    outside_.plain().close();
  }

  stream outside_;
  local_socket inside_;
  buffer down_;
  buffer up_;
};

} // namespace

actors::node_socket start_tunnel(stream connection) {
  const auto executor = connection.get_executor();
  local_socket inside(executor);
  local_socket handed_out(executor);
  asio::local::connect_pair(inside, handed_out);
  std::make_shared<tunnel>(std::move(connection), std::move(inside))->run();
  return actors::node_socket(handed_out.release());
}

} // namespace parley::net
