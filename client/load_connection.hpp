#pragma once

#include "client/load_client.hpp"
#include "client/load_material.hpp"
#include "client/load_participant.hpp"
#include "client/session_socket.hpp"

#include <memory>

namespace parley::client {

/// The socket and clock of a simulated person who speaks Parley's own protocol. Runs entirely on the thread of `io`.
class load_connection final : public load_participant, private load_hands {
public:
  /// All arguments must outlive it. Only the thread of `io` writes to `into`.
  load_connection(boost::asio::io_context& io, load_world& world, const load_material& material,
                  const load_scenario& role, load_figures& into);

private:
  void connect() override;
  void woken(double now) override { person_.woken(now); }
  bool holds_session() const override { return person_.holds_session(); }
  void on_event(const server_glance& event);
  void on_ended(const ws_client::ending& how);

  void send_init() override;
  void send_unit(std::size_t unit, bool force_listen) override;
  void send_question() override;
  void send_close() override;
  void wake_at(double time) override { wake(time); }
  void leave() override;

  const load_material& material_;
  load_figures& into_;
  load_client person_;
  std::unique_ptr<session_socket> socket_;
  std::uint64_t questions_ = 0;
};

} // namespace parley::client
