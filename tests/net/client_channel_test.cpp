#include "net/channel/client_channel.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <thread>
#include <vector>

using namespace parley::net;

namespace {

auto frame(std::size_t bytes) {
  return std::make_shared<const std::string>(bytes, 'x');
}

auto no_meter() {
  return std::make_shared<std::atomic<std::int64_t>>(0);
}

} // namespace

TEST_CASE("many calls ring the bell once until it is answered") {
  int rings = 0;
  client_channel link({}, no_meter(), [&] { ++rings; });
  link.send(frame(1));
  link.send(frame(1));
  link.close(1000, "");
  CHECK(rings == 1);
  CHECK(link.next().write);
  link.send(frame(1));
  CHECK(rings == 2);
}

TEST_CASE("credit that comes back wakes the reader, other credit does not") {
  int rings = 0;
  connection_limits limits;
  limits.credit_frames = 2;
  client_channel link(limits, no_meter(), [&] { ++rings; });
  CHECK(link.spend(10));
  link.taken(10);
  CHECK(rings == 0);
  CHECK(link.spend(10));
  CHECK_FALSE(link.spend(10));
  link.taken(10);
  CHECK(rings == 1);
  CHECK(link.next().may_read);
}

TEST_CASE("a link without its connection is silent and keeps nothing") {
  int rings = 0;
  client_channel link({}, no_meter(), [&] { ++rings; });
  auto held = frame(100);
  link.send(held);
  link.detach();
  CHECK(held.use_count() == 1);
  link.send(held);
  link.close(1000, "");
  link.taken(5);
  link.became_chat();
  CHECK(held.use_count() == 1);
  CHECK(rings == 1);
}

TEST_CASE("threads may send while the strand writes and the connection goes") {
  connection_limits limits;
  limits.outbox_bytes = 1u << 20;
  std::atomic<int> rings = 0;
  client_channel link(limits, no_meter(), [&] { ++rings; });
  std::atomic<bool> start = false;
  std::vector<std::thread> senders;
  for (int i = 0; i < 4; ++i) {
    senders.emplace_back([&] {
      while (!start) std::this_thread::yield();
      for (int n = 0; n < 1000; ++n) link.send(frame(10));
    });
  }
  start = true;
  int written = 0;
  while (written < 1000) {
    if (!link.next().write) continue;
    link.written();
    ++written;
  }
  link.detach();
  for (auto& sender : senders) sender.join();
  CHECK(written == 1000);
  CHECK(rings >= 1);
  CHECK_FALSE(link.next().write);
}

TEST_CASE("all links together know the bytes that wait, and nothing is left when they are gone") {
  const auto all = std::make_shared<std::atomic<std::int64_t>>(0);
  connection_limits limits;
  limits.outbox_bytes = 100;
  client_channel one(limits, all, [] {});
  client_channel other(limits, all, [] {});
  one.send(frame(40));
  other.send(frame(60));
  CHECK(*all == 100);
  CHECK(one.next().write);
  one.written();
  CHECK(*all == 60);
  other.send(frame(60)); // exceeds the limit: waiting frames are dropped
  CHECK(*all == 0);
  one.send(frame(10));
  one.detach();
  other.detach();
  CHECK(*all == 0);
}

TEST_CASE("what waits is counted for an owner and for all, beyond a little of each connection") {
  constexpr std::size_t kib = 1u << 10;
  const parley::base::byte_budget waiting(2000 * kib, 1000 * kib);
  connection_limits limits;
  limits.credit_bytes = 4000 * kib;
  limits.credit_frames = 1000;
  const auto link = [&](const std::string& owner) {
    return std::make_unique<client_channel>(
        limits, no_meter(), [] {}, waiting.open(owner));
  };
  const auto closed = [](client_channel& of) {
    auto work = of.next();
    for (; work.write; work = of.next()) of.written();
    return work.close ? work.close->code : 0;
  };
  auto reader = link("a"), other = link("a"), unrelated = link("b");
  for (int i = 0; i < 1000; ++i) reader->send(frame(kib));
  CHECK_FALSE(reader->next().closing);
  SECTION("frames for who does not read") {
    for (int i = 0; i < 600; ++i) other->send(frame(kib));
    CHECK(closed(*other) == 1008);
    CHECK_FALSE(reader->next().closing);
  }
  SECTION("messages for a session that does not take them") {
    int passed = 0;
    while (passed < 1000 && other->spend(kib)) ++passed;
    CHECK(passed == 192 + 128); // 832 KiB are counted of the first one, in steps of 64
    CHECK(closed(*other) == 1013);
  }
  SECTION("others have their own, until all is held") {
    for (int i = 0; i < 1100; ++i) unrelated->send(frame(kib));
    CHECK_FALSE(unrelated->next().closing);
    auto third = link("c");
    for (int i = 0; i < 1100; ++i) third->send(frame(kib));
    CHECK(closed(*third) == 1008);
  }
  SECTION("what is written or taken, or gone with its connection, comes back") {
    reader.reset();
    for (int i = 0; i < 1000; ++i) other->send(frame(kib));
    CHECK(closed(*other) == 0);
    for (int i = 0; i < 1000; ++i) {
      CHECK(other->spend(kib));
      other->taken(kib);
    }
    CHECK(closed(*other) == 0);
    auto last = link("a");
    for (int i = 0; i < 1100; ++i) last->send(frame(kib));
    CHECK_FALSE(last->next().closing);
  }
}
