#include "net/signals.hpp"

#include "net/io_thread.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <thread>
#include <utility>

namespace parley::net {

class process_signals::impl {
public:
  explicit impl(std::function<void(int)> on_signal)
      : signals_(io_, SIGHUP, SIGINT, SIGTERM), on_signal_(std::move(on_signal)) {
    wait();
    thread_ = std::thread([this] { run_guarded(io_, "the answer to a signal"); });
  }

  ~impl() {
    io_.stop();
    thread_.join();
  }

private:
  void wait() {
    signals_.async_wait([this](const boost::system::error_code& ec, int number) {
      if (ec) return;
      wait();
      on_signal_(number);
    });
  }

  boost::asio::io_context io_;
  boost::asio::signal_set signals_;
  std::function<void(int)> on_signal_;
  std::thread thread_;
};

process_signals::process_signals(std::function<void(int)> on_signal)
    : impl_(std::make_unique<impl>(std::move(on_signal))) {}
process_signals::~process_signals() = default;

} // namespace parley::net
