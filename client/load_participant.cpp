#include "client/load_participant.hpp"

namespace parley::client {

load_participant::load_participant(boost::asio::io_context& io, load_world& world, const load_scenario& role)
    : io_(io), world_(world), role_(role), timer_(io.get_executor()) {
  timer_.at(world_.at(role_.start), [this] { connect(); });
}

void load_participant::wake(double time) {
  timer_.at(world_.at(time), [this] {
    if (over_) return;
    woken(world_.now());
    tell_progress();
  });
}

void load_participant::end() {
  timer_.cancel();
  over_ = true;
  ++world_.progress.over;
  tell_progress();
}

} // namespace parley::client
