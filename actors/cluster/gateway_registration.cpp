#include "actors/cluster/gateway_registration.hpp"

#include "actors/log.hpp"
#include "actors/log_exceptions.hpp"
#include "base/assert.hpp"

#include <caf/io/all.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace parley::actors {

namespace {

constexpr std::chrono::milliseconds first_pause{100};

} // namespace

gateway_registration::gateway_registration(caf::actor_config& config, registration_options options, worker_actor worker,
                                           node_dialer dial, std::function<void(registration_event)> tell)
    : gateway_registration_inner::base(config), options_(std::move(options)), dial_(std::move(dial)),
      tell_(std::move(tell)), worker_(std::move(worker)), links_(system()), pause_(first_pause) {}

gateway_registration::behavior_type gateway_registration::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) { gone(down); });
  monitor(worker_);
  return {
      [this](const node_verdict& verdict) { on_dialled(verdict); },
      [this](const engine_up& up) {
        info_ = up.info;
        dial();
      },
      [this](const dial_over& over) { on_dialled(*over.how); },
      [this](const dial_now&) { dial(); },
  };
}

void gateway_registration::on_exit() {
  if (link_) link_->hang_up();
  link_.reset();
  registry_.reset();
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
  auto& socket = std::get<node_socket>(how);
  link_ = socket.twin();
  if (!*link_) return retry("this process is out of file descriptors");
  request(links_.broker(), options_.patience, caf::connect_atom_v, links_.scribe(std::move(socket)), std::uint16_t(1))
      .then(
          [this](const caf::node_id&, const caf::strong_actor_ptr& registry, const std::set<std::string>&) {
            if (registry) return greet(registry);
            retry("the gateway takes no workers");
          },
          [this](const caf::error& why) { retry("the gateway does not answer: " + system().render(why)); });
}

void gateway_registration::greet(const caf::strong_actor_ptr& registry) {
  PARLEY_ASSERT(info_, "only a loaded engine is joined");
  node_hello hello{worker_, this, options_.name, *info_};
  auto entrance = caf::actor_cast<node_registry_actor>(registry);
  monitor(entrance);
  send(entrance, std::move(hello));
  registry_ = std::move(entrance);
}

void gateway_registration::on_dialled(const node_verdict& verdict) {
  switch (verdict.answer) {
  case node_answer::welcome:
    log()->info("joined as worker {}", verdict.key);
    was_joined_ = true;
    pause_ = first_pause;
    last_reason_.clear();
    return tell_({registration_event::what::joined, {}});
  case node_answer::not_yet: return retry(verdict.reason);
  case node_answer::refused: return retry("the gateway says: " + verdict.reason, true);
  }
}

void gateway_registration::gone(const caf::down_msg& down) {
  if (down.source == worker_) {
    const auto& why = down.reason;
    const bool told = why.context().match_elements<std::string>();
    tell_({registration_event::what::ended, told ? why.context().get_as<std::string>(0) : "it was killed"});
    return quit();
  }
  if (registry_ && down.source == *registry_) retry("the link to the gateway is lost");
}

void gateway_registration::retry(const std::string& reason, bool lasting) {
  if (registry_) demonitor(registry_->address());
  registry_.reset();
  if (link_) link_->hang_up();
  link_.reset();
  if (lasting && !was_joined_) {
    tell_({registration_event::what::refused, reason});
    return quit();
  }
  if (std::exchange(last_reason_, reason) != reason) {
    log()->warn("{}; trying again", reason);
    tell_({registration_event::what::link_lost, reason});
  }
  delayed_send(this, pause_, dial_now{});
  pause_ = std::min(pause_ * 2, options_.longest_pause);
}

} // namespace parley::actors
