#include "actors/cluster/gateway_registration.hpp"

#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "base/assert.hpp"
#include "base/printable.hpp"

#include <utility>

namespace parley::actors {

gateway_registration::gateway_registration(caf::actor_config& config, registration_options options, worker_actor worker,
                                           node_dialer dial, std::function<void(registration_event)> tell)
    : gateway_registration_inner::base(config), options_(std::move(options)), dial_(std::move(dial)),
      tell_(std::move(tell)), worker_(std::move(worker)), link_(system(), "the gateway", options_.longest_pause) {}

gateway_registration::behavior_type gateway_registration::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) { gone(down); });
  monitor(worker_);
  return {
      [this](const node_verdict& verdict) {
        if (link_.is_from_peer(current_sender())) on_verdict(verdict);
      },
      [this](const engine_up& up) {
        info_ = up.info;
        dial();
      },
      [this](const dial_over& over) { on_dialled(*over.how); },
      [this](const dial_now&) { dial(); },
  };
}

void gateway_registration::on_exit() {
  link_.hang_up();
  worker_ = nullptr;
  dial_ = nullptr; // pending calls hold this actor and must not outlive its system
}

void gateway_registration::dial() {
  dial_([self = gateway_registration_inner(this)](dialled how) {
    caf::anon_send(self, dial_over{std::make_shared<dialled>(std::move(how))});
  });
}

void gateway_registration::on_dialled(dialled& how) {
  if (const auto* failure = std::get_if<dial_failure>(&how)) return retry(failure->reason, failure->lasting);
  link_.open(
      *this, std::move(std::get<node_socket>(how)), options_.patience, "the gateway takes no workers",
      [this](const node_registry_actor& registry) { greet(registry); },
      [this](const std::string& reason) { retry(reason); });
}

void gateway_registration::greet(const node_registry_actor& registry) {
  PARLEY_ASSERT(info_, "only a loaded engine is joined");
  send(registry, node_hello{worker_, this, options_.name, *info_});
}

void gateway_registration::on_verdict(const node_verdict& verdict) {
  switch (verdict.answer) {
  case node_answer::welcome:
    log()->info("joined as worker {}", verdict.key);
    was_joined_ = true;
    link_.succeeded();
    return tell_({registration_event::what::joined, {}});
  case node_answer::not_yet: return retry(base::printable(verdict.reason));
  case node_answer::refused: return retry("the gateway says: " + base::printable(verdict.reason), true);
  }
}

void gateway_registration::gone(const caf::down_msg& down) {
  if (down.source == worker_) {
    const auto& why = down.reason;
    const bool told = why.context().match_elements<std::string>();
    tell_({registration_event::what::ended, told ? why.context().get_as<std::string>(0) : "it was killed"});
    return quit();
  }
  if (link_.leads_to(down.source)) retry("the link to the gateway is lost");
}

void gateway_registration::retry(const std::string& reason, bool lasting) {
  const bool new_reason = link_.failed(*this, reason);
  if (lasting && !was_joined_) {
    tell_({registration_event::what::refused, reason});
    return quit();
  }
  if (new_reason) {
    log()->warn("{}; trying again", reason);
    tell_({registration_event::what::link_lost, reason});
  }
  delayed_send(this, link_.next_pause(), dial_now{});
}

} // namespace parley::actors
