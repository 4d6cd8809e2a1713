#include "net/http/transfer_deadline.hpp"
#include "net/receive_deadline.hpp"
#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <system_error>

using namespace parley::net;
using namespace std::chrono_literals;

TEST_CASE("who reads on is waited for, who stalls or dribbles is not") {
  const std::chrono::steady_clock::time_point begun{};
  const auto patience = 10'000ms;
  const auto left = [&](std::chrono::milliseconds after, std::size_t bytes) {
    return transfer_deadline(begun, begun + after, bytes, patience) - (begun + after);
  };
  CHECK(left(0ms, 0) == 10s);
  CHECK(left(60s, 60'000'000) == 10s);
  CHECK(left(600s, 16 * 600'000) == 10s);
  CHECK(left(1s, 100'000'000) == 10s); // it went into a buffer, which earns no extra time
  CHECK(left(9s, 9) == 1s);            // a byte per second
  CHECK(left(60s, 16 * 30'000) == -20s);
}

TEST_CASE("a message may fall behind for a while, but not use up what it was ahead") {
  const std::chrono::steady_clock::time_point begun{};
  receive_deadline deadline(begun, 20s);
  CHECK(deadline.at() == begun + 20s);
  deadline.received(5000 * 20, begun + 19s); // a small message over a slow line
  CHECK(deadline.at() == begun + 26'250ms);
  deadline.received(100'000'000, begun + 26s);
  CHECK(deadline.at() == begun + 46s);
  deadline.received(1, begun + 45s);
  CHECK(deadline.at() < begun + 47s);
}

TEST_CASE("who keeps up the rate is waited for however long the message is") {
  const std::chrono::steady_clock::time_point begun{};
  receive_deadline deadline(begun, 20s);
  for (auto now = begun; now < begun + 1h; now += 1s) {
    REQUIRE(now < deadline.at());
    deadline.received(16'000, now + 1s);
  }
}

namespace {

/// A server whose answer has some 21 MB and which waits half a second for a slow reader.
struct large_answer_fixture : server_fixture {
  large_answer_fixture() : server_fixture(short_times()) {
    options.voice = [] {
      return named_voice{"long.wav", std::make_shared<const std::vector<float>>(4'000'000, 0.25f)};
    };
  }
  static connection_limits short_times() {
    connection_limits limits;
    limits.handshake = 500ms;
    return limits;
  }
};

constexpr std::string_view ask = "GET /api/default_ref_audio HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

} // namespace

TEST_CASE("a slow reader gets a large answer whole, however long that takes") {
  large_answer_fixture fixture;
  wire_client client = fixture.connect();
  client.send(ask);
  const auto begun = std::chrono::steady_clock::now();
  std::size_t bytes = 0;
  while (const auto more = client.skip(200'000)) {
    bytes += more;
    std::this_thread::sleep_until(begun + std::chrono::milliseconds(bytes / 10'000)); // 10 MB/s
  }
  CHECK(bytes > 21'333'000);
}

TEST_CASE("who does not read an answer is not waited for") {
  large_answer_fixture fixture;
  wire_client client = fixture.connect();
  client.shrink_receive_buffer();
  client.send(ask);
  CHECK(client.skip(1000) > 0);
  CHECK(fixture.empties());
}

namespace {

/// A server that waits half a second for a body that does not arrive, and a client that has sent the head of one.
struct body_fixture : server_fixture {
  static constexpr std::size_t body_bytes = 200'000;

  body_fixture() : server_fixture(short_times()) {
    client.send("POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                std::to_string(body_bytes) + "\r\n\r\n");
  }
  static connection_limits short_times() {
    connection_limits limits;
    limits.ping = 500ms;
    return limits;
  }

  wire_client client = connect();
};

} // namespace

TEST_CASE("a body may take its time while it arrives") {
  body_fixture fixture;
  const std::string part(body_fixture::body_bytes / 10, 'x');
  for (std::size_t sent = 0; sent < body_fixture::body_bytes; sent += part.size()) {
    fixture.client.send(part);
    std::this_thread::sleep_for(100ms);
  }
  CHECK(fixture.client.read_response().status == 400); // it is no JSON
}

TEST_CASE("who sends a byte of a body now and then is not waited for") {
  body_fixture fixture;
  CHECK_FALSE(fixture.client.trickle(std::string(500, 'x'))); // the server hangs up
  CHECK(fixture.empties());
}

TEST_CASE("who sends much of a body at once and then a byte now and then is not waited for") {
  body_fixture fixture;
  fixture.client.send(std::string(190'000, 'x'));
  CHECK_FALSE(fixture.client.trickle(std::string(500, 'x')));
  CHECK(fixture.empties());
}
