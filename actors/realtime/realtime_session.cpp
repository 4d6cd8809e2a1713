#include "actors/realtime/realtime_session.hpp"

#include "actors/log.hpp"
#include "actors/log_exceptions.hpp"
#include "actors/reports/status_report.hpp"

#include <utility>
#include <variant>

namespace parley::actors {

namespace {

/// Where an inner session's frames go.
class inner_link final : public client_link {
public:
  inner_link(realtime_actor to, std::uint64_t number) : to_(std::move(to)), number_(number) {}
  void send(std::shared_ptr<const std::string> frame) override {
    caf::anon_send(to_, inner_frame{number_, std::move(frame)});
  }
  void close(std::uint16_t, std::string) override { caf::anon_send(to_, inner_closed{number_}); }
  void taken(std::size_t) override {} // the machine sends little ahead of the answers

private:
  const realtime_actor to_;
  const std::uint64_t number_;
};

} // namespace

realtime_session::realtime_session(caf::actor_config& config, realtime_registry& registry,
                                   std::unique_ptr<protocol::realtime::adapter> machine, inner_opener open,
                                   connection_info connection, std::shared_ptr<client_link> link)
    : realtime_actor::base(config), open_(std::move(open)), connection_(std::move(connection)), link_(std::move(link)),
      machine_(std::move(machine)), entry_(registry.add(realtime_actor(this))) {
  const log_session about(machine_->id());
  log()->debug("connected from {}{}{}, speaks a dialect of OpenAI's", connection_.remote,
               connection_.key.empty() ? "" : " with key ", connection_.key);
  carry_out(machine_->start(steady_now()));
}

realtime_session::behavior_type realtime_session::make_behavior() {
  log_exceptions(this, [] {});
  return {
      [this](client_frame& frame) {
        carry_out(machine_->on_frame(frame.text, steady_now()));
        link_->taken(frame.text.size());
      },
      [this](const client_binary&) {
        carry_out({protocol::realtime::end_client{1003, "binary frames are not used"}});
      },
      [this](const client_gone&) { quit(); },
      [this](const inner_frame& frame) {
        carry_out(machine_->on_inner_frame(frame.number, *frame.text, steady_now()));
      },
      [this](const inner_closed& which) { carry_out(machine_->on_inner_closed(which.number, steady_now())); },
      [this](const drain_request&) { carry_out(machine_->on_drain(steady_now())); },
      [this](const timer_due&) {
        deadline_timer_.fired(steady_now());
        carry_out(machine_->tick(steady_now()));
      },
  };
}

void realtime_session::on_exit() {
  if (!link_closed_ && link_) link_->close(1011, "internal error");
  drop_inner_session();
  open_ = nullptr;
  entry_.reset();
  link_.reset();
  machine_.reset(); // a pending timer keeps this object alive
  connection_.reservation.reset();
}

void realtime_session::carry_out(protocol::realtime::effects&& effects) {
  const log_session about(machine_->id());
  for (auto& effect : effects) std::visit([this](auto& each) { perform(each); }, effect);
  deadline_timer_.arm(this, machine_->next_deadline());
}

void realtime_session::perform(protocol::realtime::to_client& effect) {
  link_->send(std::make_shared<const std::string>(std::move(effect.frame)));
}

void realtime_session::perform(protocol::realtime::end_client& effect) {
  link_closed_ = true;
  link_->close(effect.code, std::move(effect.reason));
}

void realtime_session::perform(protocol::realtime::open_inner& effect) {
  connection_info info;
  info.mode = name_of(effect.kind);
  info.remote = connection_.remote;
  info.group = connection_.group;
  info.key = connection_.key;
  info.accepted = steady_now();
  inner_ = open_(std::move(info), std::make_shared<inner_link>(realtime_actor(this), effect.number));
}

void realtime_session::perform(protocol::realtime::to_inner& effect) {
  if (inner_) inner_->text(std::move(effect.frame));
}

void realtime_session::perform(protocol::realtime::drop_inner&) {
  drop_inner_session();
}

void realtime_session::drop_inner_session() {
  if (!inner_) return;
  inner_->gone();
  inner_.reset();
}

} // namespace parley::actors
