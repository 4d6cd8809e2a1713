#pragma once

#include "client/load_client.hpp"
#include "client/load_material.hpp"
#include "client/load_participant.hpp"
#include "client/session_socket.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>

namespace parley::client {

/// The socket and clock of a simulated person who speaks Parley's own protocol. Runs entirely on the thread of `io`.
class load_connection final : public load_participant, private load_hands {
public:
  /// All arguments must outlive it. Only the thread of `io` writes to `into`.
  load_connection(boost::asio::io_context& io, load_world& world, const load_material& material,
                  const load_scenario& role, load_figures& into);

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
  const load_material& material_;
  const load_scenario role_;
  boost::asio::steady_timer timer_;
  load_client person_;
  std::unique_ptr<session_socket> socket_;
  std::uint64_t questions_ = 0;
  bool held_ = false, over_ = false;
};

} // namespace parley::client
