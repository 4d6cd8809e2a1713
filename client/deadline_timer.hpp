#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstdint>
#include <utility>

namespace parley::client {

/// Calls something at a time, unless it was set to another time or cancelled before: also if the time had come by then and
/// the call only waited for its turn, in which case Asio's timer would still make it.
class deadline_timer {
public:
  using clock = std::chrono::steady_clock;

  explicit deadline_timer(const boost::asio::any_io_executor& executor) : timer_(executor) {}

  void at(clock::time_point time, auto call) {
    timer_.expires_at(time);
    timer_.async_wait([this, set = ++set_, call = std::move(call)](boost::system::error_code ec) mutable {
      if (!ec && set == set_) call();
    });
  }

  void after(clock::duration time, auto call) { at(clock::now() + time, std::move(call)); }

  void cancel() {
    ++set_;
    timer_.cancel();
  }

private:
  boost::asio::steady_timer timer_;
  std::uint64_t set_ = 0; ///< how many times it was set or cancelled
};

} // namespace parley::client
