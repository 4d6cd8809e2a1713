#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdlib>
#include <future>
#include <iostream>
#include <random>
#include <vector>

using namespace parley::net;

namespace {

/// Goes part of the way through a session and leaves, in one of several ways.
void visit(server_fixture& fixture, std::uint32_t seed) {
  std::mt19937 random(seed);
  const auto one_of = [&random](std::uint32_t n) { return random() % n; };
  wire_client client = fixture.connect();
  const auto leave = [&] {
    if (one_of(2) == 0) client.reset();
  };
  const auto depth = one_of(8);
  if (depth == 0) return leave();
  if (depth == 1) {
    client.send("GET /v1/realtime HTTP/1.1\r\nConn");
    return leave();
  }
  if (depth == 2) {
    client.send("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    return leave();
  }
  if (client.upgrade("/v1/realtime?mode=audio").status != 101) throw std::runtime_error("no upgrade");
  if (depth == 3) return leave();
  const std::string bytes = wire_client::encode(wire_client::text, std::string(1 + one_of(200'000), 'x'));
  if (depth == 4) {
    client.send(std::string_view(bytes).substr(0, one_of(static_cast<std::uint32_t>(bytes.size()))));
    return leave();
  }
  client.send(bytes);
  if (depth == 5) return leave();
  client.read_data();
  if (depth == 6) return leave();
  client.send_frame(wire_client::close, std::string("\x03\xE8", 2));
  if (one_of(2) == 0) client.read_close();
}

} // namespace

TEST_CASE("200 connections, dropped at random points, leave nothing behind") {
  server_fixture fixture;
  fixture.start();
  constexpr int visitors = 4;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < visitors; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        try {
          visit(fixture, static_cast<std::uint32_t>(1000 * t + i));
        } catch (const std::exception&) {
          ++failed;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failed == 0);
  CHECK(fixture.empties());
  CHECK(fixture.gateway.open() == 0);
}

TEST_CASE("200 connections at once are served and go") {
  server_fixture fixture;
  {
    std::vector<wire_client> clients;
    for (int i = 0; i < 200; ++i) clients.push_back(fixture.open());
    CHECK(fixture.start().connections() == 200);
    for (auto& client : clients) client.send_frame(wire_client::text, std::string(20'000, 'x'));
    for (auto& client : clients) CHECK(client.read_data().payload.size() == 20'000);
  }
  CHECK(fixture.empties());
  CHECK(fixture.gateway.open() == 0);
}

TEST_CASE("a goodbye that crosses with a broken frame does not hold the server up") {
  server_fixture fixture;
  fixture.gateway.on_text = [](echo_gateway::session& s, std::string&&) { s.link->close(1003, "no more"); };
  fixture.start();
  constexpr int visitors = 4, rounds = 400;
  std::vector<std::thread> threads;
  for (int t = 0; t < visitors; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < rounds; ++i) {
        auto client = fixture.open();
        auto frames = wire_client::encode(wire_client::text, "hello");
        for (auto more = random() % 4; more > 0; --more) frames += wire_client::encode(wire_client::text, "hello");
        const auto broken = wire_client::encode(wire_client::text, "\xFF\xFE");
        try {
          client.send(frames);
          if (random() % 2 == 0) std::this_thread::yield();
          client.send(broken);
        } catch (const std::exception&) {
        } // the client has hung up already
      }
    });
  }
  for (auto& thread : threads) thread.join();
  auto stopped = std::async(std::launch::async, [&] { fixture.start().stop(std::chrono::seconds(1)); });
  if (stopped.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
    std::cerr << "connections are held for ever\n";
    std::quick_exit(1); // the threads can no longer be joined
  }
  SUCCEED();
}
