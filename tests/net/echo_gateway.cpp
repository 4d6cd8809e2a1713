#include "tests/net/echo_gateway.hpp"

#include <algorithm>
#include <utility>

namespace parley::net {

class echo_gateway::handle final : public actors::session_handle {
public:
  handle(echo_gateway& gateway, std::shared_ptr<session> mine) : core_(gateway), mine_(std::move(mine)) {}

  void text(std::string&& frame) override {
    const std::lock_guard lock(core_.mutex_);
    mine_->frames.push_back(frame);
    if (core_.on_text) {
      core_.on_text(*mine_, std::move(frame));
    } else {
      mine_->link->taken(frame.size());
      mine_->link->send(std::make_shared<const std::string>(std::move(frame)));
    }
    core_.changed_.notify_all();
  }

  void binary() override {
    const std::lock_guard lock(core_.mutex_);
    ++mine_->binaries;
    mine_->link->close(1003, "text only");
    core_.changed_.notify_all();
  }

  void gone() override { core_.let_go(*mine_); }

private:
  echo_gateway& core_;
  std::shared_ptr<session> mine_;
};

/// A guest's turns are taken by the test as they are made.
class echo_gateway::guest_handle final : public actors::guest_handle {
public:
  guest_handle(echo_gateway& gateway, std::shared_ptr<session> mine) : core_(gateway), mine_(std::move(mine)) {}

  void say(protocol::client_event&& event) override {
    const std::lock_guard lock(core_.mutex_);
    mine_->said.push_back(event);
    if (core_.on_said) core_.on_said(*mine_, event);
    core_.changed_.notify_all();
  }

  void ask(const std::shared_ptr<const protocol::guest::deferred_turn>& what) override { say(what->make().value()); }

  void gone() override { core_.let_go(*mine_); }

private:
  echo_gateway& core_;
  std::shared_ptr<session> mine_;
};

void echo_gateway::let_go(session& of) {
  const std::lock_guard lock(mutex_);
  of.gone = true;
  of.info.reservation.reset();
  changed_.notify_all();
}

std::unique_ptr<actors::guest_handle> echo_gateway::admit_guest(actors::connection_info info,
                                                                std::shared_ptr<actors::guest_link> link) {
  const std::lock_guard lock(mutex_);
  auto mine = std::make_shared<session>();
  mine->info = std::move(info);
  mine->guest = std::move(link);
  sessions_.push_back(mine);
  changed_.notify_all();
  return std::make_unique<guest_handle>(*this, std::move(mine));
}

std::unique_ptr<actors::session_handle> echo_gateway::admit(actors::connection_info info,
                                                            std::shared_ptr<actors::client_link> link) {
  const std::lock_guard lock(mutex_);
  auto mine = std::make_shared<session>();
  mine->info = std::move(info);
  mine->link = std::move(link);
  sessions_.push_back(mine);
  changed_.notify_all();
  return std::make_unique<handle>(*this, std::move(mine));
}

actors::readiness echo_gateway::ready() const {
  return readiness;
}

void echo_gateway::status(std::function<void(std::string json)> done, actors::status_part part) {
  if (part == actors::status_part::workers) return done(R"({"total":0,"workers":[]})");
  if (part == actors::status_part::queue) return done(R"({"queue_length":0,"items":[]})");
  if (answers_status) done(status_json);
}

void echo_gateway::metrics(std::function<void(std::string text)> done) {
  done("# HELP parley_core From the gateway.\n# TYPE parley_core gauge\nparley_core 1\n");
}

std::string echo_gateway::sessions(const actors::principal& who) {
  return R"([{"for":")" + (who.sees_all ? "all" : who.key) + R"("}])";
}

void echo_gateway::move_session(std::string id, std::function<void(bool known)> done) {
  done(id == "sess_known");
}

void echo_gateway::drain_worker(std::uint64_t id, bool drain, std::function<void(bool known)> done) {
  if (id == 1) draining = drain;
  done(id == 1);
}

void echo_gateway::close_session(std::string id, std::string reason, actors::principal who,
                                 std::function<void(actors::close_answer)> done) {
  {
    const std::lock_guard lock(mutex_);
    close_reason = std::move(reason);
  }
  using enum actors::close_answer;
  if (id != known_session) return done(unknown);
  done(who.sees_all || who.key == known_key ? closed : forbidden);
}

void echo_gateway::close_sessions_of(const std::string& key, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  removed_keys.push_back(key);
  close_reason = reason;
}

bool echo_gateway::eventually(const std::function<bool(const std::vector<std::shared_ptr<session>>&)>& look) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return look(sessions_); });
}

echo_gateway::session echo_gateway::at(std::size_t index) {
  const std::lock_guard lock(mutex_);
  return *sessions_.at(index);
}

std::size_t echo_gateway::begun() {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

std::size_t echo_gateway::open() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(sessions_.begin(), sessions_.end(), [](auto& s) { return !s->gone; }));
}

} // namespace parley::net
