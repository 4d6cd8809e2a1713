#include "client/load_participant.hpp"

namespace parley::client {

load_participant::load_participant(boost::asio::io_context& io, load_world& world, const load_scenario& role)
    : io_(io), world_(world), role_(role), timer_(io) {
  timer_.expires_at(world_.at(role_.start));
  timer_.async_wait([this](auto ec) {
    if (!ec) connect();
  });
}

void load_participant::wake(double time) {
  timer_.expires_at(world_.at(time));
  timer_.async_wait([this](auto ec) {
    if (ec || over_) return;
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
