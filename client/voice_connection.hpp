#pragma once

#include "client/load_participant.hpp"
#include "client/voice_client.hpp"
#include "client/voice_material.hpp"
#include "client/ws_client.hpp"

#include <memory>
#include <string_view>

namespace parley::client {

/// The socket and clock of a simulated person who speaks one of OpenAI's dialects, and the validator of what the server
/// sends. Runs entirely on the thread of `io`.
class voice_connection final : public load_participant, private voice_hands {
public:
  /// All arguments must outlive it. Only the thread of `io` writes to `into`.
  voice_connection(boost::asio::io_context& io, load_world& world, const voice_material& material,
                   const load_scenario& role, load_figures& into);

private:
  void connect() override;
  void woken(double now) override { person_.woken(now); }
  bool holds_session() const override { return person_.holds_session(); }
  void on_opened();
  void on_frame(std::string_view frame);
  void on_ended(const ws_client::ending& how);
  void judge(std::string_view frame);

  void send_begin() override;
  void send_piece(std::size_t unit, std::size_t number) override;
  void send_probe() override;
  void send_close() override;
  void wake_at(double time) override { wake(time); }
  void leave() override;

  const voice_material& material_;
  load_figures& into_;
  voice_client person_;
  std::unique_ptr<protocol::conformance::event_validator> validator_; ///< null once a rule was broken
  std::unique_ptr<ws_client> socket_;
};

} // namespace parley::client
