#include "base/assert.hpp"
#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace parley::net;

// Both sides close at random moments while the other one goes on sending, as a microphone does. PARLEY_CONNECTIONS
// connections instead of 2,000, with the seeds from PARLEY_SEED on.

namespace {

using generator = std::mt19937;

std::uint32_t setting(const char* name, std::uint32_t usual) {
  const char* given = std::getenv(name);
  return given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : usual;
}

std::uint32_t below(generator& random, std::uint32_t n) {
  return static_cast<std::uint32_t>(random() % n);
}
bool one_in(generator& random, std::uint32_t n) {
  return below(random, n) == 0;
}

/// Every dialect, and clients of which nobody knows yet what they speak.
constexpr std::array<const char*, 8> targets{
    "/v1/realtime?mode=audio",     "/v1/realtime?mode=video", "/v1/realtime?mode=chat", "/v1/realtime?x=",
    "/v1/realtime?dialect=openai", "/openai/v1/realtime?x=",  "/openai/realtime?x=",    "/v1/live/sessions?x="};

/// Around the sizes at which a message is read in one piece, in several, or needs a longer header.
std::size_t size_of_message(generator& random) {
  constexpr std::array<std::size_t, 9> edges{0, 1, 125, 126, 128, 900, 1536, 3000, 16'384};
  if (one_in(random, 40)) return 60'000 + below(random, 140'000);
  return edges[below(random, edges.size())] + below(random, 200);
}

/// What a client sends next: mostly messages as a microphone sends them, sometimes something else.
std::string next_bytes(generator& random) {
  std::string payload(size_of_message(random), 'x');
  switch (below(random, 24)) {
  case 0: return wire_client::encode(wire_client::ping, payload.substr(0, 125));
  case 1: return wire_client::encode(wire_client::pong, payload.substr(0, 125));
  case 2: return wire_client::encode(wire_client::text, payload, false);
  case 3: return wire_client::encode(wire_client::continuation, payload, one_in(random, 2));
  case 4: return wire_client::encode(wire_client::binary, payload);
  case 5: return wire_client::encode(wire_client::text, payload + "\xFF\xFE");
  case 6: return wire_client::encode(wire_client::close, std::string("\x03\xE8", 2));
  case 7: return wire_client::encode(3, payload);
  default: return wire_client::encode(wire_client::text, payload);
  }
}

/// A session that echoes, sends a lot, takes nothing for a while, and closes after one of its first messages.
void play(echo_gateway::session& session, std::string&& frame) {
  const auto number = static_cast<std::uint32_t>(session.frames.size());
  const auto seed = static_cast<std::uint32_t>(std::stoul(session.info.session_id.value_or("0")));
  session.frames.back().clear();
  generator random(seed * 64 + number);
  session.link->taken(frame.size());
  if (one_in(random, 3)) session.link->became_chat();
  for (auto more = below(random, 3); more > 0; --more)
    session.link->send(std::make_shared<const std::string>(below(random, 5000), 'y'));
  if (one_in(random, 4)) session.link->close(static_cast<std::uint16_t>(1000 + 8 * below(random, 2)), "enough");
}

/// Sends `bytes` cut at random places. False once the server is gone or reads nothing.
bool send_in_pieces(wire_client& client, std::string_view bytes, generator& random) {
  try {
    while (!bytes.empty()) {
      const auto piece = one_in(random, 2) ? bytes.size() : 1 + below(random, static_cast<std::uint32_t>(bytes.size()));
      if (!client.try_send(bytes.substr(0, piece), std::chrono::seconds(10))) return false;
      bytes.remove_prefix(piece);
      if (one_in(random, 4)) std::this_thread::yield();
    }
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

/// One connection: talks, perhaps says goodbye and goes on all the same, and ends in one of several ways.
void visit(server_fixture& fixture, std::uint32_t seed) {
  generator random(seed);
  wire_client client = fixture.connect();
  if (one_in(random, 8)) client.shrink_receive_buffer();
  const auto target = targets[below(random, targets.size())] + ("&session_id=" + std::to_string(seed));
  if (client.upgrade(target).status != 101) throw std::runtime_error("no upgrade");
  if (one_in(random, 3))
    client.send_frame(wire_client::text, R"({"type":"session.update","session":{"type":"realtime"}})");
  std::string burst;
  for (auto left = 1 + below(random, 30); left > 0; --left) {
    burst += next_bytes(random);
    if (one_in(random, 3) && !send_in_pieces(client, std::exchange(burst, {}), random)) break;
  }
  switch (below(random, 6)) {
  case 0: return; // gone, with part of what it had to say
  case 1: return client.reset();
  case 2:
    send_in_pieces(
        client, std::string_view(burst).substr(0, below(random, 1 + static_cast<std::uint32_t>(burst.size()))), random);
    return client.reset();
  case 3:
    send_in_pieces(client, burst, random);
    client.shut_down_sending();
    break;
  case 4: send_in_pieces(client, burst + wire_client::encode(wire_client::close, ""), random); break;
  case 5: send_in_pieces(client, burst, random); break;
  }
  client.drop_rest(wire_client::encode(wire_client::text, std::string(size_of_message(random), 'x')));
}

connection_limits hasty() {
  connection_limits limits;
  limits.close = std::chrono::milliseconds(50); // for those that do not answer a close frame
  limits.ping = std::chrono::milliseconds(500);
  limits.credit_frames = 4;
  return limits;
}

} // namespace

TEST_CASE("whatever is under way when a connection closes, it costs nobody else anything") {
  const auto connections = setting("PARLEY_CONNECTIONS", 2'000);
  const auto first = setting("PARLEY_SEED", 1);
  constexpr std::uint32_t visitors = 4;
  const auto before = parley::base::violation_count();
  server_fixture fixture(hasty());
  fixture.gateway.on_text = play;
  fixture.start();
  std::atomic<std::uint32_t> next = first;
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < visitors; ++t) {
    threads.emplace_back([&] {
      for (auto seed = next++; seed - first < connections; seed = next++) {
        try {
          visit(fixture, seed);
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
  CHECK(parley::base::violation_count() == before);
}
