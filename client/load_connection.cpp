#include "client/load_connection.hpp"

namespace parley::client {

load_connection::load_connection(boost::asio::io_context& io, load_world& world, const load_material& material,
                                 const load_scenario& role, load_figures& into)
    : load_participant(io, world, role), material_(material), into_(into),
      person_(role_, material.script(), world.habits, world.end, *this, into) {}

void load_connection::connect() {
  // The seed also chooses the address where the session begins.
  socket_ = std::make_unique<session_socket>(
      io_.get_executor(), world_.urls, role_.seed % world_.urls.size(), role_.seed,
      session_socket::callbacks{.opened = {},
                                .event = [this](std::string_view, const auto& event) { on_event(event); },
                                .unreadable = [](std::string_view) {},
                                .lost = [this] { person_.lost(world_.now()); },
                                .resumed = [this](std::int64_t) { person_.resumed(world_.now()); },
                                .ended = [this](const auto& how) { on_ended(how); }});
  person_.connecting(world_.now());
  socket_->connect(protocol::name_of(role_.mode));
}

void load_connection::on_event(const server_glance& event) {
  if (event.answers_unit || event.type == server_event_type::response_done) ++world_.progress.answers;
  person_.heard(world_.now(), event);
  tell_progress();
}

void load_connection::on_ended(const ws_client::ending& how) {
  if (into_.failure.empty()) into_.failure = how.error;
  person_.ended(world_.now(), how.error.empty() ? "" : "connection_failed");
  end();
}

void load_connection::send_init() {
  socket_->send(material_.init(role_.spoken));
}
void load_connection::send_unit(std::size_t unit, bool force_listen) {
  socket_->append(material_.unit(role_.mode, role_.spoken, unit, force_listen));
}
void load_connection::send_question() {
  socket_->append(material_.question(role_.seed + questions_++));
}
void load_connection::send_close() {
  socket_->send(material_.close());
}

void load_connection::leave() {
  socket_->close();
}

} // namespace parley::client
