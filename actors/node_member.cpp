#include "actors/node_member.hpp"

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

node_member::node_member(caf::actor_config& config, member_options options, worker_actor worker, node_dialer dial,
                         std::function<void(member_news)> tell)
    : node_member_inner::base(config), options_(std::move(options)), dial_(std::move(dial)), tell_(std::move(tell)),
      worker_(std::move(worker)), links_(system()), pause_(first_pause) {}

node_member::behavior_type node_member::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) { gone(down); });
  monitor(worker_);
  return {
      [this](const node_verdict& verdict) { take(verdict); },
      [this](const engine_up& up) {
        info_ = up.info;
        dial();
      },
      [this](const dial_over& over) { take(*over.how); },
      [this](const dial_now&) { dial(); },
  };
}

void node_member::on_exit() {
  if (link_) link_->hang_up();
  link_.reset();
  registry_.reset();
  worker_ = nullptr;
  dial_ = nullptr; // calls that are still to come hold this actor, and must not outlive its system
}

void node_member::dial() {
  dial_([self = node_member_inner(this)](dialled how) {
    caf::anon_send(self, dial_over{std::make_shared<dialled>(std::move(how))});
  });
}

void node_member::take(dialled& how) {
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

void node_member::greet(const caf::strong_actor_ptr& registry) {
  PARLEY_ASSERT(info_, "only a loaded engine is joined");
  node_hello hello{worker_, this, options_.name, *info_};
  auto door = caf::actor_cast<node_registry_actor>(registry);
  monitor(door);
  send(door, std::move(hello));
  registry_ = std::move(door);
}

void node_member::take(const node_verdict& verdict) {
  switch (verdict.answer) {
  case node_answer::welcome:
    log()->info("joined as worker {}", verdict.key);
    was_joined_ = true;
    pause_ = first_pause;
    last_reason_.clear();
    return tell_({member_news::what::joined, {}});
  case node_answer::not_yet: return retry(verdict.reason);
  case node_answer::refused: return retry("the gateway says: " + verdict.reason, true);
  }
}

void node_member::gone(const caf::down_msg& down) {
  if (down.source == worker_) {
    const auto& why = down.reason;
    const bool told = why.context().match_elements<std::string>();
    tell_({member_news::what::ended, told ? why.context().get_as<std::string>(0) : "it was killed"});
    return quit();
  }
  if (registry_ && down.source == *registry_) retry("the link to the gateway is lost");
}

void node_member::retry(const std::string& reason, bool lasting) {
  if (registry_) demonitor(registry_->address());
  registry_.reset();
  if (link_) link_->hang_up();
  link_.reset();
  if (lasting && !was_joined_) {
    tell_({member_news::what::refused, reason});
    return quit();
  }
  if (std::exchange(last_reason_, reason) != reason) {
    log()->warn("{}; trying again", reason);
    tell_({member_news::what::link_lost, reason});
  }
  delayed_send(this, pause_, dial_now{});
  pause_ = std::min(pause_ * 2, options_.longest_pause);
}

} // namespace parley::actors
