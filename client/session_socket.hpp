#pragma once

#include "client/deadline_timer.hpp"
#include "client/resumption.hpp"
#include "client/server_url.hpp"
#include "client/ws_client.hpp"

#include <boost/asio/any_io_executor.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace parley::client {

/// One session with a server, over as many connections as it takes: if one breaks and the server kept the session, the
/// next one continues it, at any of the given addresses (docs/protocol.md 14). Like a `ws_client` otherwise: it never
/// blocks, and all calls and callbacks run on `executor`, one at a time.
class session_socket {
public:
  struct callbacks {
    std::function<void()> opened; ///< the first connection stands
    /// A frame and what it says, valid during the call. What concerns only the return stays inside.
    std::function<void(std::string_view, const server_glance&)> event;
    std::function<void(std::string_view)> unreadable;    ///< a frame that is no event
    std::function<void()> lost;                          ///< the connection broke, and the session may go on
    std::function<void(std::int64_t resent)> resumed;    ///< it does; that many events follow again
    std::function<void(const ws_client::ending&)> ended; ///< the last callback
  };

  /// `urls` is not empty; the session begins at number `first` of them. `seed`: of the waits by chance.
  session_socket(const boost::asio::any_io_executor& executor, std::vector<server_url> urls, std::size_t first,
                 std::uint64_t seed, callbacks told);

  /// Call once. `mode`: chat, audio or video.
  void connect(std::string_view mode);

  /// Queues a frame. Once the session has begun, only session.close is sent like this; it is sent again if it got lost
  /// with a connection. Dropped before `connect`, and after `close` or the end.
  void send(std::string frame) { send(std::make_shared<const std::string>(std::move(frame))); }
  void send(std::shared_ptr<const std::string> frame);

  /// The same for an input.append.
  void append(std::string frame) { append(std::make_shared<const std::string>(std::move(frame))); }
  void append(std::shared_ptr<const std::string> frame);

  /// Sends what is queued, then closes; the session does not come back.
  void close();

private:
  void open(std::size_t address, const std::string& query);
  void take(std::string_view frame);
  void lose(const ws_client::ending& how);
  void give_up(std::uint16_t code);
  void come_back(std::size_t address);
  void resume(const server_glance& event);
  void wait(double seconds, std::function<void()> then);
  double now() const;

  boost::asio::any_io_executor executor_;
  std::vector<server_url> urls_;
  std::size_t first_;     ///< address where the session begins
  std::size_t tried_ = 1; ///< how many addresses were tried for the first connection
  std::string mode_query_;
  callbacks told_;
  resumption memory_;
  std::mt19937_64 chance_;
  deadline_timer timer_;
  std::unique_ptr<ws_client> socket_;
  std::shared_ptr<const std::string> farewell_; ///< the session.close, once there is one
  bool reached_ = false;                        ///< a connection stood
  bool away_ = false;                           ///< between a break and session.resumed
  bool leaving_ = false;                        ///< `close` was called
};

} // namespace parley::client
