#include "tests/actors/test_server.hpp"

#include "protocol/media/pcm.hpp"

#include <chrono>
#include <future>
#include <stdexcept>

namespace parley::tests {

namespace {
constexpr std::chrono::seconds deadline{30};
}

nlohmann::json test_client::init(const std::string& payload) {
  send_text(R"({"type":"session.init","payload":)" + payload + "}");
  return link->next("session.created");
}

nlohmann::json test_client::step(const std::string& answer) {
  send_text(append_frame());
  return link->next(answer);
}

std::string test_client::close_session() {
  send_text(R"({"type":"session.close","reason":"user_stop"})");
  const auto reason = link->next("session.closed")["reason"].get<std::string>();
  link->closed();
  handle->gone();
  return reason;
}

std::string append_frame(std::size_t samples, bool force_listen) {
  std::string frame = R"({"type":"input.append","input":{"audio":")";
  protocol::append_samples(std::vector<float>(samples), frame);
  return frame + (force_listen ? R"(","force_listen":true}})" : R"("}})");
}

std::string chat_frame(const std::string& words) {
  return R"({"type":"input.append","input":{"messages":[{"role":"user","content":")" + words + R"("}]}})";
}

config::settings test_server::quick_settings() {
  config::settings settings;
  settings.limits.drain_seconds = 0.05;
  settings.openai.voice_activity = config::voice_activity::loudness; // tests speak in tones
  settings.queue.no_worker_seconds = 0.05;
  return settings;
}

test_server::test_server(config::settings settings, actors::server_core::nodes others)
    : core_(std::make_unique<actors::server_core>(
          settings,
          [this](const actors::worker_view& view) {
            const std::lock_guard lock(mutex_);
            news_.push_back(view);
            changed_.notify_all();
          },
          others)) {}

void test_server::add(stub_script& script) {
  core_->add_worker("none", [&script](inference::engine::sink tell) { return script.make(std::move(tell)); });
}

void test_server::add_up(stub_script& script) {
  add(script);
  wait_for(actors::worker_state::up);
}

actors::worker_view test_server::wait_for(actors::worker_state state) {
  std::unique_lock lock(mutex_);
  const auto come = [&] {
    for (; heard_ < news_.size(); ++heard_)
      if (news_[heard_].state == state) return true;
    return false;
  };
  if (!changed_.wait_for(lock, deadline, come)) throw std::runtime_error("no worker came into that state");
  return news_[heard_++];
}

test_client test_server::connect(const std::string& mode, std::shared_ptr<recording_link> link,
                                 std::optional<std::string> session_id, std::shared_ptr<void> place,
                                 const std::string& key) {
  if (!link) link = std::make_shared<recording_link>();
  actors::connection_info info;
  if (!mode.empty()) info.mode = mode;
  info.session_id = std::move(session_id);
  info.key = key;
  info.remote = "test";
  info.reservation = std::move(place);
  info.accepted = std::chrono::steady_clock::now();
  return {link, core_->admit(std::move(info), link)};
}

test_client test_server::come_back(const std::string& session_id, const std::string& token,
                                   std::optional<std::string> last_event_id, const std::string& key) {
  auto link = std::make_shared<recording_link>();
  actors::connection_info info;
  info.session_id = session_id;
  info.resume_token = token;
  info.last_event_id = std::move(last_event_id);
  info.key = key;
  info.remote = "test again";
  info.accepted = std::chrono::steady_clock::now();
  return {link, core_->admit(std::move(info), link)};
}

nlohmann::json test_server::status(actors::status_part part) {
  std::promise<std::string> answer;
  core_->status([&](std::string json) { answer.set_value(std::move(json)); }, part);
  auto told = answer.get_future();
  if (told.wait_for(deadline) != std::future_status::ready) throw std::runtime_error("no status came");
  return nlohmann::json::parse(told.get());
}

std::string test_server::metric(const std::string& name) {
  std::promise<std::string> answer;
  core_->metrics([&](std::string text) { answer.set_value(std::move(text)); });
  const std::string all = answer.get_future().get();
  const auto at = all.find("\n" + name + " ");
  if (at == std::string::npos) return "";
  const auto from = at + name.size() + 2;
  return all.substr(from, all.find('\n', from) - from);
}

void count_units(stub_script& script) {
  script.answer_with([](const conversation::command& order, const stub_script::sink& tell) {
    const auto* unit = std::get_if<conversation::submit_unit>(&order);
    if (!unit || (unit->replay && unit->replay->finished)) return stub_script::answer_as_usual(order, tell);
    conversation::step_output reply{};
    reply.session = unit->session;
    reply.unit = unit->unit;
    reply.kind = conversation::output_kind::text;
    reply.text = "word " + std::to_string(unit->unit);
    conversation::unit_choices chosen;
    chosen.finished = true;
    reply.choices = std::make_shared<const conversation::unit_choices>(std::move(chosen));
    tell(std::move(reply));
  });
}

bool eventually(const std::function<bool()>& holds) {
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (!holds())
    if (std::chrono::steady_clock::now() > until) return false;
  return true;
}

bool test_server::all_free() {
  // The queue manager answers each question only after the work before it, so a few rounds are enough.
  const auto until = std::chrono::steady_clock::now() + deadline;
  while (std::chrono::steady_clock::now() < until) {
    const auto now = status();
    int busy = 0;
    for (const auto& worker : now["workers"]) busy += worker.value("busy", 0);
    if (busy == 0 && now["queue"]["length"] == 0 && core_->live_sessions() == 0) return true;
  }
  return false;
}

} // namespace parley::tests
