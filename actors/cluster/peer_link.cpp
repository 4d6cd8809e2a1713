#include "actors/cluster/peer_link.hpp"

#include "actors/log.hpp"
#include "actors/log_exceptions.hpp"

#include <caf/io/all.hpp>

#include <algorithm>
#include <set>
#include <utility>

namespace parley::actors {

namespace {

constexpr std::chrono::milliseconds first_peer_pause{100};

} // namespace

peer_link::peer_link(caf::actor_config& config, peer_link_options options, journal_store& store,
                     std::vector<node_dialer> peers)
    : peer_link_inner::base(config), options_(std::move(options)), store_(store), peers_(std::move(peers)),
      links_(system()), pause_(first_peer_pause) {}

peer_link::behavior_type peer_link::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) {
    if (!registry_ || down.source != *registry_) return;
    next_ = peers_.size() - 1; // the first one is next
    retry("the link to the gateway that keeps copies is lost");
  });
  dial();
  return {
      [this](const peer_welcome& by) { welcome(by); },
      [this](const peer_refused& by) { retry("no copies are kept there: " + by.reason); },
      [this](const piece_taken& piece) { store_.confirm(piece.bytes); },
      [this](const log_refused& of) { store_.refused(of); },
      [this](const peer_dialled& over) { on_dialled(*over.how); },
      [this](const peer_dial_now&) { dial(); },
  };
}

void peer_link::on_exit() {
  store_.copy_to(nullptr);
  if (link_) link_->hang_up();
  link_.reset();
  registry_.reset();
  peers_.clear(); // pending calls hold this actor and must not outlive its system
}

void peer_link::dial() {
  peers_.at(next_)([self = peer_link_inner(this)](dialled how) {
    caf::anon_send(self, peer_dialled{std::make_shared<dialled>(std::move(how))});
  });
}

void peer_link::on_dialled(dialled& how) {
  if (const auto* failure = std::get_if<dial_failure>(&how)) return retry(failure->reason);
  auto& socket = std::get<node_socket>(how);
  link_ = socket.twin();
  if (!*link_) return retry("this process is out of file descriptors");
  request(links_.broker(), options_.patience, caf::connect_atom_v, links_.scribe(std::move(socket)), std::uint16_t(1))
      .then(
          [this](const caf::node_id&, const caf::strong_actor_ptr& registry, const std::set<std::string>&) {
            if (registry) return greet(registry);
            retry("the peer is no gateway");
          },
          [this](const caf::error& why) { retry("the peer does not answer: " + system().render(why)); });
}

void peer_link::greet(const caf::strong_actor_ptr& registry) {
  const auto peer = caf::actor_cast<node_registry_actor>(registry);
  registry_ = peer;
  monitor(peer);
  send(peer, peer_hello{this, store_.node(), options_.name});
}

void peer_link::welcome(const peer_welcome& by) {
  log()->info("sessions are copied to another gateway");
  pause_ = first_peer_pause;
  last_reason_.clear();
  store_.copy_to([to = by.receiver](log_piece&& piece) { caf::anon_send(to, std::move(piece)); });
}

void peer_link::retry(const std::string& reason) {
  if (registry_) demonitor(registry_->address());
  registry_.reset();
  if (link_) link_->hang_up();
  link_.reset();
  store_.copy_to(nullptr);
  if (std::exchange(last_reason_, reason) != reason) log()->warn("nodes.peers: {}; trying again", reason);
  next_ = (next_ + 1) % peers_.size();
  delayed_send(this, pause_, peer_dial_now{});
  pause_ = std::min(pause_ * 2, options_.longest_pause);
}

} // namespace parley::actors
