#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

using namespace parley;
using namespace parley::tests;

namespace {

/// A client inside the process: keeps what its session says.
class guest final : public actors::guest_link {
public:
  void hand_over(protocol::server_event&& event) override {
    const std::lock_guard lock(mutex_);
    heard_.push_back(std::move(event));
    changed_.notify_all();
  }
  void close(std::uint16_t code, std::string) override {
    const std::lock_guard lock(mutex_);
    code_ = code;
    changed_.notify_all();
  }

  /// The first event of this type; throws if none comes.
  template<class Event>
  Event wait_for() {
    std::unique_lock lock(mutex_);
    const Event* found = nullptr;
    const auto come = [&] {
      for (const auto& each : heard_)
        if (const auto* const one = std::get_if<Event>(&each)) found = one;
      return found != nullptr;
    };
    if (!changed_.wait_for(lock, std::chrono::seconds(30), come)) throw std::runtime_error("it did not come");
    return *found;
  }

  std::uint16_t closed() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(30), [&] { return code_ != 0; }))
      throw std::runtime_error("not closed");
    return code_;
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<protocol::server_event> heard_;
  std::uint16_t code_ = 0;
};

class turn final : public protocol::guest::deferred_turn {
public:
  explicit turn(std::size_t bytes, bool fails = false) : bytes_(bytes), fails_(fails) {}
  std::size_t bytes() const override { return bytes_; }
  protocol::result<protocol::chat_append_event> make() const override {
    if (fails_) throw std::runtime_error("planted");
    protocol::chat_append_event out;
    out.messages.push_back({protocol::role::user, {protocol::text_item{"hello"}}});
    return out;
  }

private:
  std::size_t bytes_;
  bool fails_;
};

struct guest_session {
  explicit guest_session(test_server& of) {
    actors::connection_info info;
    info.mode = "chat";
    info.accepted = std::chrono::steady_clock::now();
    handle = of.core().admit_guest(std::move(info), link);
    handle->say(protocol::init_event{});
    link->wait_for<protocol::session_created>();
  }
  ~guest_session() { handle->gone(); }
  guest_session(const guest_session&) = delete;
  guest_session& operator=(const guest_session&) = delete;

  std::shared_ptr<guest> link = std::make_shared<guest>();
  std::unique_ptr<actors::guest_handle> handle;
};

} // namespace

TEST_CASE("a client inside the process says events, and hears the session's id and its answers") {
  stub_script script;
  test_server core;
  core.add_up(script);
  const auto bytes = GENERATE(std::size_t{100}, 2 * actors::small_message_bytes);
  {
    guest_session one(core);
    CHECK(one.link->wait_for<protocol::session_created>().session_id.starts_with("sess_"));
    const auto asked = std::make_shared<const turn>(bytes);
    one.handle->ask(asked);
    CHECK(one.link->wait_for<protocol::response_done>().reason == "turn_end");
    one.handle->say(protocol::close_event{"user_stop"});
    CHECK(one.link->closed() == 1000);
  }
  CHECK(core.all_free());
}

TEST_CASE("a turn that cannot be made ends its session, and no other") {
  stub_script script;
  test_server core;
  core.add_up(script);
  guest_session other(core);
  const auto bytes = GENERATE(std::size_t{100}, 2 * actors::small_message_bytes);
  {
    guest_session one(core);
    const auto bad = std::make_shared<const turn>(bytes, true);
    one.handle->ask(bad);
    CHECK(one.link->closed() == 1011);
  }
  const auto good = std::make_shared<const turn>(100);
  other.handle->ask(good);
  CHECK(other.link->wait_for<protocol::response_done>().reason == "turn_end");
}
