#pragma once

#include "actors/alarm.hpp"
#include "actors/front_door.hpp"
#include "actors/journal.hpp"
#include "actors/messages.hpp"
#include "actors/recording/recorder_feed.hpp"
#include "actors/secure_random.hpp"
#include "actors/session_meter.hpp"
#include "actors/session_registry.hpp"
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
  bool legacy_extras = false;        ///< setting `protocol.legacy_extras`
  std::size_t journal_bytes = 0;     ///< setting `limits.journal_bytes`
  std::size_t resume_bytes = 0;      ///< setting `limits.resume_bytes`
  std::unique_ptr<spill_desk> spill; ///< takes what journals have above that; null = there is none
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
/// out. Keeps a journal, from which it is taken up on another worker when its own is lost, drained, or left by an
/// operator's wish; the machine learns of a lost worker in each case. Ends when the machine is closed, holds nothing, and the socket is gone (another one may take its place); whatever ends it earlier closes the
/// socket, and those who monitor it free what it held.
class session : public session_actor::base {
public:
  session(caf::actor_config& config, session_surroundings& house, session_terms terms, queue_actor queue,
          connection_info connection, std::shared_ptr<client_link> link);

  const char* name() const override { return "session"; }
  void on_exit() override;

protected:
  behavior_type make_behavior() override;

private:
  /// A slot of a worker, from the grant on.
  struct slot {
    ticket_key ticket;
    worker_actor worker;
    worker_key key;
  };

  void take_frame(client_frame& frame);
  void lose_client();
  void take_offer(offered_link& offer, const protocol::resume_claim& claim);
  void begin_recording(const std::string& id);
  void take_grant(const slot_granted& grant);
  void take_place(const slot_granted& grant);
  void take_refusal(const slot_refused& refusal);
  void take_event(engine_event& event);
  void take_denial(const open_denied& denial);
  void take_move(const move_order& order);
  void take_engine_event(inference::event&& event);
  void peer_gone(const caf::down_msg& down);
  void hold(slot fresh);
  void change_over(slot fresh);
  void rebuild();
  void rebuild_further();
  void give_up_moving();
  void tell_end();
  void ask_for_slot(protocol::mode kind, bool at_head, worker_key avoid = 0);
  void drop_slot();

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

  void open(const protocol::open_engine& order);
  void order(inference::command&& command);

  session_surroundings& house_;
  queue_actor queue_;
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
  ticket_key ticket_ = 0; ///< asked for and neither granted nor refused yet; 0 = none
  std::optional<slot> slot_;
  ticket_key lost_ = 0;                              ///< of the last slot whose worker was lost
  inference::session_id engine_session_ = 0;         ///< the one in use; 0 = none
  std::optional<protocol::open_engine> opened_with_; ///< to open it anew on another worker
  journal journal_;
  std::optional<slot> next_slot_;    ///< of a move, while the machine learns of it
  bool moving_ = false;              ///< `ticket_` is for another worker than the present one
  bool restoring_ = false;           ///< the journal is being replayed, for `on_restored`
  std::optional<prompt_key> prompt_; ///< of `opened_with_`
  bool settling_ = false;            ///< it has asked whether another worker has its prompt, and opens then
  bool reopening_ = false;           ///< the worker denied the open: it waits for another slot
  bool movable_;                     ///< it may go on elsewhere, and no attempt has failed
};

} // namespace parley::actors
