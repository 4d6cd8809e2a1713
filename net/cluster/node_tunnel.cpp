#include "net/cluster/node_tunnel.hpp"

#include "net/cluster/node_frames.hpp"
#include "net/logger.hpp"

#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace parley::net {

namespace {

using local_socket = asio::local::stream_protocol::socket;

/// A link is checked this many times per `silence`. It counts as dead if all checks but one saw nothing.
constexpr int looks = 5;

class tunnel final : public std::enable_shared_from_this<tunnel> {
public:
  tunnel(stream outside, local_socket inside, const tunnel_limits& limits)
      : outside_(std::move(outside)), inside_(std::move(inside)), clock_(outside_.get_executor()),
        look_(limits.silence / looks), frames_(limits.largest_frame) {}

  void run() {
    receive();
    send();
    look();
  }

private:
  void receive() {
    outside_.async_read_some(asio::buffer(down_), [this, self = shared_from_this()](error_code ec, std::size_t size) {
      if (ec) return end();
      heard_ = true;
      take({down_.data(), size});
    });
  }

  /// Nothing more is read until these bytes have been written.
  void take(std::string_view bytes) {
    if (!frames_.feed(bytes)) {
      log()->warn("a link between nodes is cut: a message on it is larger than any of Parley's");
      return end();
    }
    if (pending_.empty() && frames_.held() == 0) return hand_in(bytes, 0);
    pending_.append(bytes);
    const auto ready = pending_.size() - frames_.held();
    if (ready == 0) return receive();
    hand_in({pending_.data(), ready}, ready);
  }

  /// `pending`: how many of these bytes come from `pending_`.
  void hand_in(std::string_view bytes, std::size_t pending) {
    handing_in_ = true;
    asio::async_write(inside_, asio::buffer(bytes.data(), bytes.size()),
                      [this, pending, self = shared_from_this()](error_code ec, std::size_t) {
                        handing_in_ = false;
                        if (ec) return end();
                        if (pending > 0) pending_ = pending_.substr(pending); // frees the memory of a large frame
                        receive();
                      });
  }

  void send() {
    inside_.async_read_some(asio::buffer(up_), [this, self = shared_from_this()](error_code ec, std::size_t size) {
      if (ec) return end();
      asio::async_write(outside_, asio::buffer(up_.data(), size), [this, self](error_code ec, std::size_t) {
        if (ec) return end();
        send();
      });
    });
  }

  void look() {
    clock_.expires_after(look_);
    clock_.async_wait([this, self = shared_from_this()](error_code ec) {
      if (ec) return;
      // While CAF is slow to accept data, nothing is read, so no sign of life can be seen.
      const bool heard = std::exchange(heard_, false) || handing_in_;
      in_vain_ = heard ? 0 : in_vain_ + 1;
      if (in_vain_ < looks - 1) return look();
      log()->warn("a link between nodes is cut: it carried no byte for {} ms", (look_ * (looks - 1)).count());
      end();
    });
  }

  void end() {
    error_code ignored;
    clock_.cancel();
    inside_.close(ignored);
    outside_.plain().close();
  }

  using buffer = std::array<char, 64 * 1024>;

  stream outside_;
  local_socket inside_;
  asio::steady_timer clock_;
  const std::chrono::milliseconds look_;
  node_frames frames_;
  buffer down_;
  buffer up_;
  std::string pending_; ///< received, but must not be forwarded yet
  bool heard_ = false;
  bool handing_in_ = false;
  int in_vain_ = 0;
};

} // namespace

actors::node_socket start_tunnel(stream&& connection, const tunnel_limits& limits) {
  const auto executor = connection.get_executor();
  local_socket inside(executor);
  local_socket handed_out(executor);
  asio::local::connect_pair(inside, handed_out);
  std::make_shared<tunnel>(std::move(connection), std::move(inside), limits)->run();
  return actors::node_socket(handed_out.release());
}

} // namespace parley::net
