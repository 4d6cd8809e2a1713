#include "actors/cluster/peer_link.hpp"

#include "actors/log_exceptions.hpp"
#include "actors/logger.hpp"
#include "actors/speaks_for.hpp"
#include "base/printable.hpp"

#include <utility>

namespace parley::actors {

peer_link::peer_link(caf::actor_config& config, peer_link_options options, log_store& store,
                     std::vector<node_dialer> peers)
    : peer_link_inner::base(config), options_(std::move(options)), store_(store), peers_(std::move(peers)),
      link_(system(), "the peer", options_.longest_pause) {}

peer_link::behavior_type peer_link::make_behavior() {
  log_exceptions(this);
  set_down_handler([this](const caf::down_msg& down) {
    if (!link_.leads_to(down.source) && !(receiver_ && down.source == *receiver_)) return;
    next_ = peers_.size() - 1; // the first one is next
    retry("the link to the gateway that keeps copies is lost");
  });
  dial();
  return {
      [this](const peer_welcome& by) {
        if (is_answer() && speaks_for(current_sender(), by.receiver.node())) welcome(by);
      },
      [this](const peer_refused& by) {
        if (is_answer()) retry("no copies are kept there: " + base::printable(by.reason));
      },
      [this](const piece_taken& piece) {
        if (is_answer()) store_.confirm(piece.bytes);
      },
      [this](const log_refused& of) {
        if (is_answer()) store_.refused(of);
      },
      [this](const peer_dialled& over) { on_dialled(*over.how); },
      [this](const peer_dial_now&) { dial(); },
  };
}

void peer_link::on_exit() {
  store_.copy_to(nullptr);
  receiver_.reset();
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
  if (receiver_) demonitor(receiver_->address());
  receiver_ = by.receiver;
  monitor(by.receiver);
  // It ends with this actor or link.
  store_.copy_to([from = peer_link_actor(this), to = by.receiver](log_piece&& piece) {
    caf::send_as(from, to, std::move(piece));
  });
}

void peer_link::retry(const std::string& reason) {
  store_.copy_to(nullptr);
  if (receiver_) demonitor(receiver_->address());
  receiver_.reset();
  if (link_.failed(*this, reason)) log()->warn("nodes.peers: {}; trying again", reason);
  next_ = (next_ + 1) % peers_.size();
  delayed_send(this, link_.next_pause(), peer_dial_now{});
}

} // namespace parley::actors
