#include "actors/log/token_hash.hpp"
#include "actors/logger.hpp"
#include "actors/session/session.hpp"
#include "actors/unix_time.hpp"

#include <stdexcept>
#include <utility>

// How a session is kept for the process that may take it up, and taken up.
namespace parley::actors {

namespace {

/// After a planned end, clients are asked to come back in so long.
constexpr std::chrono::milliseconds back_after{1000};

/// Of a client that has not come back yet.
class no_link final : public client_link {
public:
  void send(std::shared_ptr<const std::string>) override {}
  void close(std::uint16_t, std::string) override {}
  void taken(std::size_t) override {}
};

connection_info connection_of(const rebuilt_session& session, std::shared_ptr<void> reservation,
                              std::shared_ptr<usage_account> account) {
  connection_info info;
  info.session_id = session.begin.session_id;
  info.remote = session.begin.remote;
  info.group = session.begin.group;
  info.key = session.begin.key;
  info.reservation = std::move(reservation);
  info.account = std::move(account);
  info.accepted = session.accepted;
  return info;
}

} // namespace

session::session(caf::actor_config& config, session_surroundings& shared, queue_actor queue, log_store::taken&& from,
                 std::shared_ptr<void> reservation, std::shared_ptr<usage_account> account)
    : session_actor::base(config), shared_(shared),
      connection_(connection_of(from.session, std::move(reservation), std::move(account))),
      link_(std::make_shared<no_link>()), current_id_(from.session.begin.session_id),
      machine_(std::move(from.session.machine)), meter_(shared.counted), sent_(std::move(from.session.sent)),
      id_seed_(from.session.begin.id_seed), durable_(std::move(from.log)), client_gone_(true),
      lease_(*this, std::move(queue), meter_, {},
             {shared.last_key, machine_->limits().failover.count() > 0, connection_.group, connection_.key}) {
  entry_ = shared_.registry.add(this, {connection_.remote, connection_.key, connection_.accepted});
  auto next = std::exchange(from.session.begin.legacy_id, {});
  const auto claimed = entry_->claim(current_id_, [&] {
    auto id = std::exchange(next, {});
    return id.empty() ? shared_.legacy_ids.next(unix_ms()) : id;
  });
  if (!claimed) throw std::runtime_error("its id is in use");
  legacy_id_ = *claimed;
  begin_charging();
  was_charged();
  lease_.take_over(std::move(from.session.kept), std::move(from.session.opened_with));
  const log_session about(current_id_);
  log()->info("taken up");
  carry_out(std::move(from.session.first));
}

/// Until the conversation begins, only the init that it begins with is kept.
void session::keep_frame(const std::shared_ptr<const std::string>& text, const void* init_before,
                         protocol::time_point now) {
  if (machine_->created()) return keep(logged::frame{text}, now);
  const auto& init = machine_->init();
  if (init.get() == init_before) return;
  init_frame_ = init && init->resume ? text : nullptr;
  init_at_ = now;
}

void session::begin_log(const conversation::opened& opened, protocol::time_point now) {
  const auto init = std::exchange(init_frame_, nullptr);
  if (!shared_.logs || !machine_->resumable() || !init) return;
  const auto& origin = machine_->origin();
  const std::chrono::nanoseconds age = now - origin.accepted;
  const logged::beginning first{unix_ns() - age.count(),
                                origin.mode.value_or(""),
                                origin.session_id,
                                origin.legacy_id,
                                origin.recording_id.value_or(""),
                                connection_.remote,
                                connection_.group,
                                connection_.key,
                                id_seed_,
                                machine_->limits(),
                                machine_->able()};
  durable_ = shared_.logs->begin(first, origin.accepted);
  keep(logged::frame{init}, init_at_);
  keep(logged::engine_word{opened}, now);
  keep(hashes_of(*machine_->token()), now);
}

void session::keep(lease_event word, protocol::time_point now) {
  if (!durable_) return;
  if (word == lease_event::granted) keep(logged::worker_news{logged::worker_change::granted}, now);
  if (word == lease_event::worker_lost) keep(logged::worker_news{logged::worker_change::lost}, now);
  if (word == lease_event::restored) keep(logged::worker_news{logged::worker_change::restored}, now);
}

bool session::can_hand_over() const {
  return durable_ && durable_->kept() && active() && machine_->resumable() && lease_.can_move();
}

/// The server ends as planned, but not this session.
void session::hand_over() {
  const auto now = steady_now();
  keep(logged::handed_over{back_after.count()}, now);
  carry_out(machine_->on_handover(back_after, now));
  durable_->leave();
  handed_over_ = true;
  const log_session about(current_id_);
  log()->info("handed over to the next process");
  quit();
}

} // namespace parley::actors
