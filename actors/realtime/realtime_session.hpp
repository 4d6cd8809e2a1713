#pragma once

#include "actors/deadline_timer.hpp"
#include "actors/gateway_api.hpp"
#include "actors/messages.hpp"
#include "actors/meters/meters.hpp"
#include "actors/realtime/realtime_registry.hpp"
#include "actors/recording/recorder_feed.hpp"
#include "actors/transcription/transcription.hpp"
#include "protocol/openai/shared/adapter.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace parley::actors {

/// The actor around the machine of one of OpenAI's dialects: one per connection. Passes it frames and deadlines and
/// carries out its effects. The sessions that it opens are ordinary ones: they wait in the same queue, and are journaled
/// and counted like all others. All of them are one recording, which has the connection's id. Ends when the socket is gone.
class realtime_session final : public realtime_actor::base {
public:
  realtime_session(caf::actor_config& config, realtime_registry& registry, deadline_clock& clock, meters& counted,
                   std::unique_ptr<protocol::openai::adapter> machine, guest_opener open, recorder_feed* recordings,
                   connection_info connection, std::shared_ptr<client_link> link);

  const char* name() const override { return "realtime_session"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  void carry_out(protocol::openai::effects&& effects);
  void perform(protocol::openai::to_client& effect);
  void perform(protocol::openai::play_sound& effect);
  void perform(const protocol::openai::drop_sound&);
  void perform(protocol::openai::end_client& effect);
  void perform(protocol::guest::open_session& effect);
  void perform(protocol::guest::to_session& effect);
  void perform(protocol::guest::turn_to_session& effect);
  void perform(const protocol::guest::drop_session& effect);
  void perform(protocol::openai::transcribe& effect);
  void perform(const protocol::openai::note& effect);
  void drop_session();
  void record(protocol::mode kind);
  void end_recording(const std::string& reason);

  deadline_clock& clock_;
  meters& counted_;
  std::string_view dialect_; ///< its name, for metrics
  prometheus::Gauge* counted_as_ = nullptr;
  guest_opener open_;
  recorder_feed* const recordings_; ///< null = nothing is recorded
  protocol::mode recorded_as_ = protocol::mode::chat;
  connection_info connection_;
  std::shared_ptr<client_link> link_;
  std::unique_ptr<protocol::openai::adapter> machine_;
  std::unique_ptr<realtime_registry::entry> entry_;
  std::unique_ptr<guest_handle> inner_;
  std::shared_ptr<const protocol::guest::deferred_turn> turn_; ///< that the inner session gets, as long as it is wanted
  transcription_actor transcription_;                          ///< null until something is to be written down
  deadline_timer deadline_timer_;
  bool link_closed_ = false;
};

} // namespace parley::actors
