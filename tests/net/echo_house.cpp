#include "tests/net/echo_house.hpp"

#include <algorithm>
#include <utility>

namespace parley::net {

class echo_house::inbox final : public actors::session_inbox {
public:
  inbox(echo_house& house, std::shared_ptr<session> mine) : house_(house), mine_(std::move(mine)) {}

  void text(std::string&& frame) override {
    const std::lock_guard lock(house_.mutex_);
    mine_->frames.push_back(frame);
    if (house_.on_text) {
      house_.on_text(*mine_, std::move(frame));
    } else {
      mine_->link->taken(frame.size());
      mine_->link->send(std::make_shared<const std::string>(std::move(frame)));
    }
    house_.changed_.notify_all();
  }

  void binary() override {
    const std::lock_guard lock(house_.mutex_);
    ++mine_->binaries;
    mine_->link->close(1003, "text only");
    house_.changed_.notify_all();
  }

  void gone() override {
    const std::lock_guard lock(house_.mutex_);
    mine_->gone = true;
    mine_->info.place.reset();
    house_.changed_.notify_all();
  }

private:
  echo_house& house_;
  std::shared_ptr<session> mine_;
};

std::unique_ptr<actors::session_inbox> echo_house::admit(actors::connection_info info,
                                                         std::shared_ptr<actors::client_link> link) {
  const std::lock_guard lock(mutex_);
  auto mine = std::make_shared<session>();
  mine->info = std::move(info);
  mine->link = std::move(link);
  sessions_.push_back(mine);
  changed_.notify_all();
  return std::make_unique<inbox>(*this, std::move(mine));
}

actors::readiness echo_house::ready() const {
  return readiness;
}

void echo_house::status(std::function<void(std::string json)> done, actors::status_part part) {
  if (part == actors::status_part::workers) return done(R"({"total":0,"workers":[]})");
  if (part == actors::status_part::queue) return done(R"({"queue_length":0,"items":[]})");
  if (answers_status) done(status_json);
}

void echo_house::metrics(std::function<void(std::string text)> done) {
  done("# HELP parley_house From the house.\n# TYPE parley_house gauge\nparley_house 1\n");
}

std::string echo_house::sessions(const actors::requester& who) {
  return R"([{"for":")" + (who.sees_all ? "all" : who.key) + R"("}])";
}

void echo_house::move_session(std::string id, std::function<void(bool known)> done) {
  done(id == "sess_known");
}

void echo_house::drain_worker(std::uint64_t id, bool drain, std::function<void(bool known)> done) {
  if (id == 1) draining = drain;
  done(id == 1);
}

void echo_house::close_session(std::string id, std::string reason, actors::requester who,
                               std::function<void(actors::close_answer)> done) {
  {
    const std::lock_guard lock(mutex_);
    close_reason = std::move(reason);
  }
  using enum actors::close_answer;
  if (id != known_session) return done(unknown);
  done(who.sees_all || who.key == known_key ? closed : forbidden);
}

bool echo_house::eventually(const std::function<bool(const std::vector<std::shared_ptr<session>>&)>& look) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(10), [&] { return look(sessions_); });
}

echo_house::session echo_house::at(std::size_t index) {
  const std::lock_guard lock(mutex_);
  return *sessions_.at(index);
}

std::size_t echo_house::open() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(std::count_if(sessions_.begin(), sessions_.end(), [](auto& s) { return !s->gone; }));
}

} // namespace parley::net
