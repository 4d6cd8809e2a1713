#include "net/http/transfer_deadline.hpp"
#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

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
