#pragma once

#include "actors/cluster/node_link.hpp"

#include <caf/io/all.hpp>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace parley::actors {

/// An actor's link to the registry of a gateway, and the pauses between its attempts to connect. Used by that actor alone.
class registry_link {
public:
  /// `peer`: what error messages call the other side.
  registry_link(caf::actor_system& system, std::string peer, std::chrono::milliseconds longest_pause)
      : links_(system), peer_(std::move(peer)), longest_pause_(longest_pause) {}

  /// Asks over the socket for the registry and monitors it. Calls `on_open` with it, or `on_failure` with a reason;
  /// `wrong_peer` is the reason if there is no registry.
  template<class Owner, class OnOpen, class OnFailure>
  void open(Owner& owner, node_socket socket, std::chrono::milliseconds patience, const char* wrong_peer,
            OnOpen on_open, OnFailure on_failure) {
    socket_ = socket.twin();
    if (!*socket_) return on_failure("this process is out of file descriptors");
    owner.request(links_.broker(), patience, caf::connect_atom_v, links_.scribe(std::move(socket)), std::uint16_t(1))
        .then(
            [this, &owner, wrong_peer, on_open, on_failure](const caf::node_id&, const caf::strong_actor_ptr& found,
                                                            const std::set<std::string>&) {
              if (!found) return on_failure(wrong_peer);
              auto registry = caf::actor_cast<node_registry_actor>(found);
              owner.monitor(registry);
              registry_ = registry;
              on_open(std::move(registry));
            },
            [this, &owner, on_failure](const caf::error& why) {
              on_failure(peer_ + " does not answer: " + owner.system().render(why));
            });
  }

  bool leads_to(const caf::actor_addr& who) const { return registry_ && who == *registry_; }

  /// Whether who sent a message is on the other side of this link.
  bool is_from_peer(const caf::strong_actor_ptr& sender) const {
    return registry_ && sender && sender->node() == registry_->node();
  }

  /// The attempt was worth it: the next pause is short, and the next reason is told.
  void succeeded() {
    pause_ = first_pause;
    last_reason_.clear();
  }

  /// Hangs up. Returns whether the reason differs from that of the last failure.
  template<class Owner>
  bool failed(Owner& owner, const std::string& reason) {
    if (registry_) owner.demonitor(registry_->address());
    hang_up();
    return std::exchange(last_reason_, reason) != reason;
  }

  /// How long to wait before the next attempt; twice as long each time.
  std::chrono::milliseconds next_pause() { return std::exchange(pause_, std::min(pause_ * 2, longest_pause_)); }

  /// The actor ends: it must not be reached any more.
  void hang_up() {
    if (socket_) socket_->hang_up();
    socket_.reset();
    registry_.reset();
  }

private:
  static constexpr std::chrono::milliseconds first_pause{100};

  node_links links_;
  const std::string peer_;
  const std::chrono::milliseconds longest_pause_;
  std::optional<node_socket> socket_; ///< kept so that it can be hung up
  std::optional<node_registry_actor> registry_;
  std::string last_reason_;
  std::chrono::milliseconds pause_ = first_pause;
};

} // namespace parley::actors
