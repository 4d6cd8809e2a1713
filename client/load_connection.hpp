#pragma once

#include "client/load_client.hpp"
#include "client/load_material.hpp"
#include "client/session_socket.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

namespace parley::client {

/// Progress of a run, written by all threads.
struct load_progress {
  std::atomic<int> held{0}, most_held{0};
  std::atomic<std::int64_t> answers{0}, over{0};
};

/// What all connections of a run share.
struct load_world {
  std::vector<server_url> urls; ///< of one server or cluster
  load_material material;
  load_habits habits;
  double end = 0; ///< end of the run, in its seconds
  std::chrono::steady_clock::time_point start;
  load_progress progress;

  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); }
};

/// A simulated person's socket and clock. Runs entirely on the thread of `io`.
class load_connection final : public load_hands {
public:
  /// All arguments must outlive it. Only the thread of `io` writes to `into`.
  load_connection(boost::asio::io_context& io, load_world& world, const load_scenario& role, load_figures& into);

private:
  void connect();
  void on_event(const protocol::server_glance& event);
  void on_ended(const ws_client::ending& how);
  void tell_progress();

  void send_init() override;
  void send_unit(std::size_t unit, bool force_listen) override;
  void send_question() override;
  void send_close() override;
  void wake_at(double time) override;
  void leave() override;

  boost::asio::io_context& io_;
  load_world& world_;
  const load_scenario role_;
  boost::asio::steady_timer timer_;
  load_client person_;
  std::unique_ptr<session_socket> socket_;
  std::uint64_t questions_ = 0;
  bool held_ = false, over_ = false;
};

} // namespace parley::client
