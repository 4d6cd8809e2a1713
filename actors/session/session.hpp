#pragma once

#include "actors/deadline_timer.hpp"
#include "actors/gateway_api.hpp"
#include "actors/guest/event_handle.hpp"
#include "actors/log/log_store.hpp"
#include "actors/log_facts.hpp"
#include "actors/messages.hpp"
#include "actors/queue/worker_table.hpp"
#include "actors/realtime/owner_budgets.hpp"
#include "actors/recording/recorder_feed.hpp"
#include "actors/secure_random.hpp"
#include "actors/session/session_meter.hpp"
#include "actors/session/worker_lease.hpp"
#include "actors/session_registry.hpp"
#include "actors/transcription/transcription.hpp"
#include "base/byte_budget.hpp"
#include "protocol/session/sent_events.hpp"
#include "protocol/session/session_machine.hpp"
#include "protocol/trace/session_trace.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace parley::actors {

/// What a server's sessions share. Must outlive them.
struct session_surroundings {
  bool legacy_extras = false;            ///< setting `protocol.legacy_extras`
  std::size_t replay_bytes = 0;          ///< setting `limits.journal_bytes`
  std::size_t resume_bytes = 0;          ///< setting `limits.resume_bytes`
  base::byte_budget kept{0, 0};          ///< settings `limits.kept_bytes`, `limits.kept_bytes_per_client`
  std::unique_ptr<log_store> logs;       ///< null = sessions end with this process
  const worker_table* workers = nullptr; ///< those of the server
  session_registry registry;
  deadline_clock clock;
  std::unique_ptr<recorder_feed> recordings; ///< null = nothing is recorded
  meters counted;
  guest_opener open;               ///< sessions whose client is one of ours
  bool transcribes = false;        ///< setting `openai.transcribe`
  owner_budgets* owners = nullptr; ///< what the connections of one owner may have done in the background
  protocol::legacy_ids legacy_ids;
  /// The last ticket or engine session id. Starts at a random number, so that gateways sharing a worker differ.
  std::atomic<std::uint64_t> last_key{secure_random() >> 1};
  std::atomic<link_number> last_link{0}; ///< the last number of a connection that resumed a session
};

/// What a session may use and what it can do, as of its start.
struct session_terms {
  protocol::session_limits limits;
  protocol::capabilities able;
};

/// The actor around a session machine: one per WebSocket. Passes it frames, reports and deadlines, and carries out its
/// effects; its worker_lease handles where its engine session lives. Ends when the machine is closed, holds nothing,
/// and the socket is gone (which another one may replace). If anything ends it earlier, it closes the socket, and those
/// who monitor it free what it held.
class session : public session_actor::base {
public:
  session(caf::actor_config& config, session_surroundings& shared, session_terms terms, queue_actor queue,
          connection_info connection, std::shared_ptr<client_link> link);

  /// A session of an earlier process, whose client is about to come back. `reservation`, `account`: as in `connection_info`.
  session(caf::actor_config& config, session_surroundings& shared, queue_actor queue, log_store::taken&& from,
          std::shared_ptr<void> reservation, std::shared_ptr<usage_account> account);

  const char* name() const override { return "session"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  void take_frame(client_frame& frame);
  void take_said(guest_said& said);
  void count_init(const void* init_before);
  accepted_media media_of_last_frame() const;
  void lose_client();
  void take_offer(resume_request& offer, const protocol::resume_claim& claim);
  void begin_recording(const std::string& id);
  void take_event(engine_event& event);
  void take_engine_event(conversation::event&& event);
  void tell_fault() noexcept;
  void log_begin() const;
  void log_end();
  void describe(log_facts& facts) const;
  void sum_up(log_facts& facts) const;
  std::string end_reason() const;
  void begin_trace();
  void trace_lease(lease_event word, protocol::time_point now);
  void end_trace();
  protocol::effects begin(bool unique_id);
  void begin_charging();
  void was_charged();
  void charge(protocol::time_point now);
  void spend(protocol::time_point now);

  /// Forwards a lease event to the state machine. `why` is the reason for a refusal.
  void learn_abilities();
  void forward(lease_event word, protocol::error_code why = protocol::error_code::service_unavailable);
  bool active() const { return machine_->state() == protocol::session_state::active; }

  // For the process that may take it up (session_durable.cpp).
  void keep_frame(const std::shared_ptr<const std::string>& text, const void* init_before, protocol::time_point now);
  void begin_log(const conversation::opened& opened, protocol::time_point now);
  void keep(log_record what, protocol::time_point now) {
    if (durable_) durable_->note(std::move(what), now);
  }
  void keep(lease_event word, protocol::time_point now);
  bool can_hand_over() const;
  void hand_over();

  /// Carries out effects in order, including those that arise meanwhile. Then sets the timer, and ends the actor if
  /// everything is done.
  void carry_out(protocol::effects&& effects);
  void rearm();

  void perform(protocol::send& effect);
  void perform(const protocol::send_again& effect);
  void perform(const protocol::close_link& effect);
  void perform(const protocol::enqueue& effect);
  void perform(const protocol::cancel_ticket& effect);
  void perform(const protocol::retype& effect);
  void perform(const protocol::release_worker& effect);
  void perform(const protocol::open_engine& effect);
  void perform(conversation::submit_unit& order);
  void perform(const conversation::cut& order);
  void perform(conversation::submit_turn& order);
  void perform(const conversation::cancel_turn& order);
  void perform(const protocol::restore_session& effect);
  void perform(const protocol::close_engine& effect);
  void perform(protocol::transcribe_turn& effect);

  session_surroundings& shared_;
  connection_info connection_;
  std::shared_ptr<client_link> link_;
  link_number link_number_ = 0;
  std::string current_id_;
  std::string legacy_id_;
  std::unique_ptr<session_registry::entry> entry_;
  std::unique_ptr<protocol::session_machine> machine_;
  deadline_timer deadline_timer_;
  session_meter meter_;
  std::shared_ptr<recording_tap> recording_; ///< null = not recorded
  protocol::sent_events sent_;               ///< for a session that can be resumed
  std::uint64_t seen_ = 0;                   ///< its client has the events up to this one, says the client
  std::uint64_t id_seed_ = 0;
  std::unique_ptr<durable_log> durable_;          ///< null = it ends with this process
  std::shared_ptr<const std::string> init_frame_; ///< what the log will begin with
  protocol::time_point init_at_;
  std::optional<base::byte_budget::share> init_held_; ///< for an init that waits for a slot
  bool handed_over_ = false;
  transcription_actor transcription_;                 ///< null until something is to be written down
  std::optional<protocol::time_point> charged_until_; ///< of a conversation whose key is counted
  std::int64_t charged_tokens_ = 0;
  std::unique_ptr<protocol::trace::session_trace> trace_; ///< null = it is not traced, or its trace is complete
  protocol::effects pending_;                             ///< that `carry_out` adds while it is at work
  bool carrying_out_ = false;
  bool link_closed_ = false;
  bool client_gone_ = false;
  worker_lease lease_;
};

} // namespace parley::actors
