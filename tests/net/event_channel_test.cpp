#include "net/channel/event_channel.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <variant>

using namespace parley::net;
namespace protocol = parley::protocol;

namespace {

auto no_meter() {
  return std::make_shared<std::atomic<std::int64_t>>(0);
}

protocol::server_event words(std::size_t bytes) {
  protocol::output_delta out;
  out.kind = protocol::output_kind::text;
  out.text.assign(bytes, 'x');
  return out;
}

std::size_t bytes_of(const protocol::server_event& event) {
  return std::get<protocol::output_delta>(event).text.size();
}

} // namespace

TEST_CASE("events of a session are answered in order, one at a time, and then its end") {
  int rings = 0;
  event_channel link({}, no_meter(), [&] { ++rings; });
  link.hand_over(words(1));
  link.hand_over(words(2));
  link.close(1000, "done");
  CHECK(rings == 1);
  for (std::size_t bytes : {1u, 2u}) {
    const auto work = link.next();
    REQUIRE(work.event);
    CHECK(bytes_of(*work.event) == bytes);
    CHECK_FALSE(work.close);
    CHECK_FALSE(link.next().event);
    CHECK_FALSE(link.next().close);
    link.written();
  }
  const auto work = link.next();
  CHECK_FALSE(work.event);
  REQUIRE(work.close);
  CHECK(work.close->reason == "done");
}

TEST_CASE("events for a client that reads too slowly are dropped, its sound and its words alike") {
  connection_limits limits;
  limits.outbox_bytes = 100'000;
  const auto all = no_meter();
  event_channel link(limits, all, [] {});
  protocol::output_delta sound;
  sound.kind = protocol::output_kind::audio;
  sound.audio = std::make_shared<const std::vector<float>>(10'000);
  const auto event = GENERATE_COPY(words(50'000), protocol::server_event(sound));
  link.hand_over(protocol::server_event(event));
  CHECK(*all >= 40'000);
  CHECK(link.next().event);
  link.hand_over(protocol::server_event(event));
  CHECK(*all < 100'000);
  link.written();
  CHECK_FALSE(link.next().event);
  CHECK(*all == 0);
}

TEST_CASE("events that wait are counted for an owner") {
  constexpr std::size_t kib = 1u << 10;
  const parley::base::byte_budget waiting(2000 * kib, 1000 * kib);
  const auto link = [&](const std::string& owner) {
    return std::make_unique<event_channel>(
        connection_limits{}, no_meter(), [] {}, waiting.open(owner));
  };
  const auto closed = [](event_channel& of) {
    auto work = of.next();
    for (; work.event; work = of.next()) of.written();
    return work.close ? work.close->code : 0;
  };
  auto first = link("a"), other = link("a"), unrelated = link("b");
  for (const auto& each : {&first, &other, &unrelated})
    for (int i = 0; i < 10; ++i) (*each)->hand_over(words(80 * kib));
  CHECK(closed(*other) == 1008);
  CHECK(closed(*unrelated) == 0);
  CHECK(closed(*first) == 0);
}

TEST_CASE("a channel without its connection is silent and keeps nothing") {
  int rings = 0;
  const auto all = no_meter();
  event_channel link({}, all, [&] { ++rings; });
  link.hand_over(words(100));
  link.detach();
  CHECK(*all == 0);
  link.hand_over(words(100));
  link.close(1000, "");
  CHECK(*all == 0);
  CHECK(rings == 1);
  CHECK_FALSE(link.next().event);
  CHECK_FALSE(link.next().close);
}
