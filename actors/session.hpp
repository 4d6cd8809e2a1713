#pragma once

#include "actors/alarm.hpp"
#include "actors/front_door.hpp"
#include "actors/messages.hpp"
#include "actors/recording/recorder_feed.hpp"
#include "actors/secure_random.hpp"
#include "actors/session_meter.hpp"
#include "actors/session_registry.hpp"
#include "actors/tenancy.hpp"
#include "actors/worker_board.hpp"
#include "protocol/sent_events.hpp"
#include "protocol/session_machine.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

namespace parley::actors {

/// What the sessions of a house share. Outlives them.
struct session_surroundings {
  bool legacy_extras = false;            ///< setting `protocol.legacy_extras`
  std::size_t journal_bytes = 0;         ///< setting `limits.journal_bytes`
  std::size_t resume_bytes = 0;          ///< setting `limits.resume_bytes`
  std::unique_ptr<spill_desk> spill;     ///< takes what journals have above that; null = there is none
  const worker_board* workers = nullptr; ///< of the house
  session_registry registry;
  std::unique_ptr<recorder_feed> recordings; ///< null = nothing is recorded
  meters counted;
  protocol::legacy_ids legacy_ids;
  /// Of tickets and engine sessions. It starts anywhere: houses that share a worker do not use the same ones.
  std::atomic<std::uint64_t> last_key{secure_random() >> 1};
  std::atomic<link_number> last_link{0}; ///< of connections that claim sessions
};

/// What a session may use and what it can do, as things are when it begins.
struct session_terms {
  protocol::session_limits limits;
  protocol::capabilities able;
};

/// The shell around a session machine: one per WebSocket. Feeds it frames, reports and deadlines, and carries its effects
/// out; where its engine session lives is its tenancy's business. Ends when the machine is closed, holds nothing, and the
/// socket is gone (another one may take its place); whatever ends it earlier closes the socket, and those who monitor it
/// free what it held.
class session : public session_actor::base {
public:
  session(caf::actor_config& config, session_surroundings& house, session_terms terms, queue_actor queue,
          connection_info connection, std::shared_ptr<client_link> link);

  const char* name() const override { return "session"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  void take_frame(client_frame& frame);
  accepted_media media_of_last_frame() const;
  void lose_client();
  void take_offer(offered_link& offer, const protocol::resume_claim& claim);
  void begin_recording(const std::string& id);
  void take_event(engine_event& event);
  void take_engine_event(inference::event&& event);
  void tell_fault() noexcept;
  void tell_end();

  /// What its tenancy says goes to the machine. `why` is of a refusal.
  void learn_abilities();
  void tell(tidings word, protocol::error_code why = protocol::error_code::service_unavailable);
  bool active() const { return machine_->state() == protocol::session_state::active; }

  /// Carries effects out in order; those that come up meanwhile go behind them. Then re-arms the timer and ends the
  /// actor when all is done.
  void carry_out(protocol::effects&& effects);
  void settle();

  void perform(const protocol::send& effect);
  void perform(const protocol::send_again& effect);
  void perform(const protocol::close_link& effect);
  void perform(const protocol::enqueue& effect);
  void perform(const protocol::cancel_ticket& effect);
  void perform(const protocol::retype& effect);
  void perform(const protocol::release_worker& effect);
  void perform(const protocol::open_engine& effect);
  void perform(protocol::submit_unit& effect);
  void perform(const protocol::cut_step& effect);
  void perform(const protocol::submit_turn& effect);
  void perform(const protocol::cancel_turn& effect);
  void perform(const protocol::restore_session& effect);
  void perform(const protocol::close_engine& effect);

  session_surroundings& house_;
  connection_info connection_;
  std::shared_ptr<client_link> link_;
  link_number link_number_ = 0;
  std::string current_id_;
  std::string legacy_id_;
  std::unique_ptr<session_registry::entry> entry_;
  std::unique_ptr<protocol::session_machine> machine_;
  alarm alarm_;
  session_meter meter_;
  std::unique_ptr<recording_tap> recording_; ///< null = not recorded
  protocol::sent_events sent_;               ///< of a session that can be taken up again
  std::deque<protocol::effect> pending_;
  bool carrying_out_ = false;
  bool link_closed_ = false;
  bool client_gone_ = false;
  tenancy tenancy_;
};

} // namespace parley::actors
