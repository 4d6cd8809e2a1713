#include "actors/cluster/peer_link.hpp"

#include "actors/log.hpp"
#include "actors/log_exceptions.hpp"

#include <utility>

namespace parley::actors {

peer_link::peer_link(caf::actor_config& config, peer_link_options options, journal_store& store,
                     std::vector<node_dialer> peers)
    : peer_link_inner::base(config), options_(std::move(options)), store_(store), peers_(std::move(peers)),
      link_(system(), "the peer", options_.longest_pause) {}

peer_link::behavior_type peer_link::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) {
    if (!link_.leads_to(down.source)) return;
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
  link_.hang_up();
  peers_.clear(); // pending calls hold this actor and must not outlive its system
}

void peer_link::dial() {
  peers_.at(next_)([self = peer_link_inner(this)](dialled how) {
    caf::anon_send(self, peer_dialled{std::make_shared<dialled>(std::move(how))});
  });
}

void peer_link::on_dialled(dialled& how) {
  if (const auto* failure = std::get_if<dial_failure>(&how)) return retry(failure->reason);
  link_.open(
      *this, std::move(std::get<node_socket>(how)), options_.patience, "the peer is no gateway",
      [this](const node_registry_actor& registry) {
        send(registry, peer_hello{this, store_.node(), options_.name});
      },
      [this](const std::string& reason) { retry(reason); });
}

void peer_link::welcome(const peer_welcome& by) {
  log()->info("sessions are copied to another gateway");
  link_.succeeded();
  store_.copy_to([to = by.receiver](log_piece&& piece) { caf::anon_send(to, std::move(piece)); });
}

void peer_link::retry(const std::string& reason) {
  store_.copy_to(nullptr);
  if (link_.failed(*this, reason)) log()->warn("nodes.peers: {}; trying again", reason);
  next_ = (next_ + 1) % peers_.size();
  delayed_send(this, link_.next_pause(), peer_dial_now{});
}

} // namespace parley::actors
