#include "actors/cluster/copy_receiver.hpp"

#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/speaks_for.hpp"

#include <utility>

namespace parley::actors {

copy_receiver::copy_receiver(caf::actor_config& config, log_store& store, peer_hello from)
    : copy_receiver_actor::base(config), store_(store), link_(id()), from_(std::move(from)) {}

copy_receiver::behavior_type copy_receiver::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg&) {
    log()->warn("the link to gateway {} is lost; its sessions may go on here", from_.name);
    quit();
  });
  monitor(from_.sender);
  log()->info("keeps copies of the sessions of gateway {}", from_.name);
  send(from_.sender, peer_welcome{this});
  return {[this](log_piece& piece) {
    if (!speaks_for(current_sender(), from_.sender.node())) return;
    store_.receive({from_.node, link_}, std::move(piece),
                   [self = copy_receiver_actor(this), to = from_.sender](const piece_answer& answer) {
                     std::visit([&](const auto& each) { caf::send_as(self, to, each); }, answer);
                   });
  }};
}

void copy_receiver::on_exit() {
  store_.sender_gone(link_);
  from_.sender = nullptr;
}

} // namespace parley::actors
