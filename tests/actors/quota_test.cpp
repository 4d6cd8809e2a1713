#include "actors/session/quota_forecast.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

using namespace parley;
using tests::append_frame;
using tests::recording_link;
using tests::stub_script;
using tests::test_client;
using tests::test_server;

namespace {

/// Counts, and is spent when a test says so.
class counted_account final : public actors::usage_account {
public:
  void charge(double seconds, std::int64_t tokens) override {
    const std::lock_guard lock(mutex_);
    seconds_ += seconds;
    tokens_ += tokens;
  }
  std::optional<std::string> spent() const override {
    return is_spent ? std::optional<std::string>("no more today") : std::nullopt;
  }
  std::vector<left> rests() const override { return {{true, 600, seconds_left, std::chrono::hours(1)}}; }

  double seconds() const {
    const std::lock_guard lock(mutex_);
    return seconds_;
  }
  std::int64_t tokens() const {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }

  std::atomic<bool> is_spent{false};
  std::atomic<double> seconds_left{600};

private:
  mutable std::mutex mutex_;
  double seconds_ = 0;
  std::int64_t tokens_ = 0;
};

actors::connection_info with(const std::shared_ptr<actors::usage_account>& account) {
  actors::connection_info info;
  info.mode = "audio";
  info.remote = info.group = "test";
  info.key = "ann";
  info.account = account;
  info.accepted = std::chrono::steady_clock::now();
  return info;
}

test_client connect(test_server& core, actors::connection_info info) {
  auto link = std::make_shared<recording_link>();
  return {link, core.core().admit(std::move(info), link)};
}

} // namespace

TEST_CASE("a conversation is counted for its key, from its begin to its end") {
  stub_script script;
  test_server core;
  core.add_up(script);
  const auto account = std::make_shared<counted_account>();
  auto client = connect(core, with(account));
  client.link->next("session.queue_done");
  CHECK(account->tokens() == 0);
  const auto before = std::chrono::steady_clock::now();
  client.init();
  client.step();
  const auto closed = [&] {
    client.send_text(R"({"type":"session.close"})");
    return client.link->next("session.closed");
  }();
  CHECK(tests::eventually([&] { return core.core().live_sessions() == 0; }));
  CHECK(account->tokens() == closed["usage"]["total_tokens"]);
  CHECK(account->seconds() > 0);
  CHECK(account->seconds() <= std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a conversation ends when its key has used up its quota, also while nothing happens") {
  stub_script script;
  test_server core;
  core.add_up(script);
  const auto account = std::make_shared<counted_account>();
  auto client = connect(core, with(account));
  client.init();
  account->is_spent = true;
  const auto error = client.link->next("error")["error"];
  CHECK(error["code"] == "quota_exceeded");
  CHECK(error["message"] == "no more today");
  CHECK(client.link->next("session.closed")["reason"] == "quota_exceeded");
  client.vanish();
  CHECK(core.all_free());
  CHECK(tests::eventually(
      [&] { return core.metric(R"(parley_sessions_ended_total{mode="audio",reason="quota_exceeded"})") == "1"; }));
}

TEST_CASE("a client is warned once when its key has used nine tenths of a quota") {
  stub_script script;
  test_server core;
  core.add_up(script);
  const auto account = std::make_shared<counted_account>();
  auto client = connect(core, with(account));
  client.init();
  client.step();
  account->seconds_left = 60;
  const auto warning = client.link->next("session.go_away");
  CHECK(warning["reason"] == "quota_exceeded");
  CHECK(warning["time_left_ms"] == 60'000);
  account->seconds_left = 30;
  account->is_spent = true;
  CHECK(client.link->next("error")["error"]["code"] == "quota_exceeded");
  CHECK(client.link->next("session.closed")["reason"] == "quota_exceeded");
  const auto said = client.link->events();
  CHECK(std::ranges::count(said, "session.go_away", [](const auto& event) { return event["type"]; }) == 1);
}

TEST_CASE("how long a quota lasts is told from what is left of the tightest one") {
  using left = actors::usage_account::left;
  using namespace std::chrono_literals;
  const auto forecast = [](std::vector<left> rests) { return actors::quota_forecast(rests, 100, 50s); };
  CHECK_FALSE(forecast({}));
  CHECK_FALSE(forecast({{true, 600, 61, 1h}, {false, 1000, 101, 1h}}));
  CHECK(forecast({{true, 600, 60, 1h}}) == 60'000ms);
  CHECK(forecast({{false, 1000, 100, 1h}}) == 50'000ms); // two tokens a second
  CHECK(forecast({{true, 600, 60, 1h}, {false, 1000, 80, 1h}, {false, 1e6, 1e6, 1h}}) == 40'000ms);
  CHECK(actors::quota_forecast(std::vector<left>{{false, 1000, 50, 1h}}, 0, 10s) == 24h);
}

TEST_CASE("a session whose key has used up its quota does not begin, unless it is in the background") {
  stub_script script;
  test_server core;
  core.add_up(script);
  const auto account = std::make_shared<counted_account>();
  account->is_spent = true;
  auto client = connect(core, with(account));
  CHECK(client.link->next("error")["error"]["code"] == "quota_exceeded");
  client.vanish();
  auto info = with(account);
  info.background = true;
  auto aside = connect(core, std::move(info));
  aside.init();
  aside.close_session();
  CHECK(account->tokens() == 0);
  aside.vanish();
  CHECK(core.all_free());
}
