#include "client/voice_connection.hpp"

#include <cstdint>
#include <exception>

namespace parley::client {

voice_connection::voice_connection(boost::asio::io_context& io, load_world& world, const voice_material& material,
                                   const load_scenario& role, load_figures& into)
    : load_participant(io, world, role), material_(material), into_(into),
      person_(role_, material.wire().traits(), material.script(), world.habits, world.end, *this, into),
      validator_(material.wire().validator()) {}

void voice_connection::connect() {
  auto url = world_.urls[role_.seed % world_.urls.size()];
  url.path = material_.wire().path(url.path);
  socket_ = std::make_unique<ws_client>(
      io_.get_executor(), ws_client::callbacks{.opened = [this] { on_opened(); },
                                               .text = [this](std::string_view frame) { on_frame(frame); },
                                               .ended = [this](const auto& how) { on_ended(how); }});
  person_.connecting(world_.now());
  socket_->connect(url, material_.wire().query());
}

void voice_connection::on_opened() {
  if (!material_.wire().traits().server_begins) person_.heard(world_.now(), {.what = voice_event::kind::greeted});
}

void voice_connection::on_frame(std::string_view frame) {
  const double now = world_.now(); // what judging takes is not the server's time
  const auto event = material_.wire().read(frame);
  if (event.what == voice_event::kind::sound) ++world_.progress.answers;
  person_.heard(now, event);
  tell_progress();
  judge(frame);
}

void voice_connection::judge(std::string_view frame) {
  if (!validator_) return;
  ++into_.judged;
  try {
    validator_->check(frame, static_cast<std::int64_t>(world_.now() * 1000));
  } catch (const std::exception& broken) {
    const std::string_view what = broken.what(); // the rule, a colon and the event
    person_.broke_rule(what.substr(0, what.find(':')));
    validator_.reset();
  }
}

void voice_connection::on_ended(const ws_client::ending& how) {
  if (into_.failure.empty()) into_.failure = how.error;
  person_.ended(world_.now(), how.error.empty() ? "" : "connection_failed");
  end();
}

void voice_connection::send_begin() {
  socket_->send(material_.begin());
}
void voice_connection::send_piece(std::size_t unit, std::size_t number) {
  socket_->send(material_.piece(unit, number));
}
void voice_connection::send_probe() {
  socket_->send(material_.probe());
}
void voice_connection::send_close() {
  material_.close() ? socket_->send(material_.close()) : socket_->close();
}
void voice_connection::leave() {
  socket_->close();
}

} // namespace parley::client
