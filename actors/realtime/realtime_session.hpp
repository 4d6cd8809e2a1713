#pragma once

#include "actors/deadline_timer.hpp"
#include "actors/gateway_api.hpp"
#include "actors/messages.hpp"
#include "actors/realtime/realtime_registry.hpp"
#include "protocol/realtime/adapter.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace parley::actors {

/// Opens a session of Parley's own protocol (server_core::admit).
using inner_opener = std::function<std::unique_ptr<session_handle>(connection_info, std::shared_ptr<client_link>)>;

/// The actor around the machine of one of OpenAI's dialects: one per connection. Passes it frames and deadlines and
/// carries out its effects. The sessions that it opens are ordinary ones: they wait in the same queue, and are journaled,
/// recorded and counted like all others. Ends when the socket is gone.
class realtime_session final : public realtime_actor::base {
public:
  realtime_session(caf::actor_config& config, realtime_registry& registry,
                   std::unique_ptr<protocol::realtime::adapter> machine, inner_opener open, connection_info connection,
                   std::shared_ptr<client_link> link);

  const char* name() const override { return "realtime_session"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  void carry_out(protocol::realtime::effects&& effects);
  void perform(protocol::realtime::to_client& effect);
  void perform(protocol::realtime::end_client& effect);
  void perform(protocol::realtime::open_inner& effect);
  void perform(protocol::realtime::to_inner& effect);
  void perform(protocol::realtime::drop_inner& effect);
  void drop_inner_session();

  inner_opener open_;
  connection_info connection_;
  std::shared_ptr<client_link> link_;
  std::unique_ptr<protocol::realtime::adapter> machine_;
  std::unique_ptr<realtime_registry::entry> entry_;
  std::unique_ptr<session_handle> inner_;
  deadline_timer deadline_timer_;
  bool link_closed_ = false;
};

} // namespace parley::actors
