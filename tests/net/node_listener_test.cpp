#include "net/cluster/node_listener.hpp"

#include "config/settings.hpp"
#include "net/cluster/node_dialer.hpp"
#include "net/cluster/node_greeting.hpp"
#include "net/logger.hpp"
#include "tests/net/scarce_descriptors.hpp"
#include "tests/net/wire_client.hpp"

#include <catch2/catch.hpp>
#include <spdlog/sinks/ringbuffer_sink.h>

#include <algorithm>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <sys/socket.h>
#include <variant>

using namespace parley;
using namespace parley::net;

namespace {

/// Accepts every node that passes the handshake.
class open_entrance final : public actors::node_entrance {
public:
  void admit_node(actors::node_socket socket, const std::string&) override {
    const std::lock_guard lock(mutex_);
    nodes_.push_back(std::make_unique<actors::node_socket>(std::move(socket)));
    changed_.notify_all();
  }

  /// Waits for the first node and returns its socket, or -1 if none arrives.
  int first() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [&] { return !nodes_.empty(); })) return -1;
    return nodes_.front()->release();
  }

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<actors::node_socket>> nodes_;
};

struct listener_fixture {
  explicit listener_fixture(double silence_seconds = 60, const std::string& secret = {}) {
    settings.nodes.port = 0;
    settings.nodes.secret = secret;
    settings.nodes.silence_seconds = silence_seconds;
    settings.limits.handshake_seconds = 60;
    listener = std::make_unique<node_listener>(settings, entrance);
  }

  wire_client connect() const {
    const std::string address = listener->address();
    return wire_client(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  }

  wire_client join() const {
    wire_client node = connect();
    node.send(node_greeting("a worker joins"));
    const auto answer = read_node_greeting(node.read_bytes(node_greeting_bytes));
    if (!answer || answer->words != node_welcome) throw std::runtime_error("not let in");
    return node;
  }

  config::settings settings;
  open_entrance entrance;
  std::unique_ptr<node_listener> listener;
};

std::string header(std::uint32_t payload) {
  std::string bytes(32, '\0');
  for (int i = 0; i < 4; ++i) bytes[static_cast<std::size_t>(4 + i)] = static_cast<char>(payload >> (24 - 8 * i));
  return bytes;
}

std::string read_all(int socket, std::size_t bytes) {
  std::string got(bytes, '\0');
  std::size_t have = 0;
  while (have < bytes) {
    const auto more = ::recv(socket, got.data() + have, bytes - have, 0);
    if (more <= 0) break;
    have += static_cast<std::size_t>(more);
  }
  got.resize(have);
  return got;
}

} // namespace

TEST_CASE("who has most connections loses its oldest") {
  CHECK(whom_to_drop({"a"}) == 0);
  CHECK(whom_to_drop({"a", "a", "a"}) == 0);
  CHECK(whom_to_drop({"a", "b", "b"}) == 1);
  CHECK(whom_to_drop({"a", "b", "a", "c"}) == 0);
  CHECK(whom_to_drop({"a", "b", "c", "b", "c", "c"}) == 2);
}

TEST_CASE("connections that say nothing keep no node out") {
  listener_fixture fixture;
  std::vector<wire_client> silent;
  for (int i = 0; i < 64; ++i) silent.push_back(fixture.connect());
  const wire_client node = fixture.join();
  CHECK(fixture.entrance.first() >= 0);
  CHECK(silent.front().ended());
}

TEST_CASE("where a secret is asked for, only who shows it joins") {
  const std::string secret = "0123456789abcdef0123456789abcdef";
  listener_fixture fixture(60, secret);
  const auto answer = [&](const std::string& words) {
    wire_client node = fixture.connect();
    node.send(node_greeting(words));
    return read_node_greeting(node.read_bytes(node_greeting_bytes)).value().words;
  };
  for (const std::string wrong : {"a worker joins", "a worker joins with", "a worker joins with 0", ""}) {
    INFO(wrong);
    CHECK(answer(wrong) == "refused: only processes that this one has started may join here");
  }
  CHECK(answer("a worker joins with " + secret.substr(1) + "0") != node_welcome);
  CHECK(answer("a worker joins with " + secret) == node_welcome);
  CHECK(fixture.entrance.first() >= 0);
}

TEST_CASE("a worker shows the secret that it was given") {
  listener_fixture fixture(60, "0123456789abcdef");
  const auto join = [&](const std::string& secret) {
    auto settings = fixture.settings;
    settings.nodes.secret = secret;
    node_dialer dialer(settings, fixture.listener->address());
    std::promise<actors::dialled> done;
    dialer.dial([&](actors::dialled how) { done.set_value(std::move(how)); });
    return std::holds_alternative<actors::node_socket>(done.get_future().get());
  };
  CHECK_FALSE(join(""));
  CHECK_FALSE(join("0123456789abcdeF"));
  CHECK(join("0123456789abcdef"));
}

TEST_CASE("refused nodes are logged now and then") {
  listener_fixture fixture;
  const auto said = std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(1000);
  net::log()->sinks().push_back(said);
  for (int i = 0; i < 50; ++i) {
    wire_client web_client = fixture.connect();
    web_client.send("GET / HTTP/1.1\r\n\r\n");
    CHECK(web_client.ended());
  }
  const auto lines = said->last_formatted();
  net::log()->sinks().pop_back();
  CHECK(std::count_if(lines.begin(), lines.end(),
                      [](const std::string& line) { return line.find("is refused") != line.npos; }) == 10);
}

// Not under UndefinedBehaviorSanitizer: to check the type of an exception it opens a pipe, and it reports a wrong type
// when no descriptor is left.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("a node that comes while descriptors are short is turned away, and the next one joins") {
  listener_fixture fixture;
  for (const std::size_t left : {1u, 2u, 3u}) {
    INFO(left);
    const scarce_descriptors scarce(left);
    wire_client node = fixture.connect(); // takes a descriptor itself
    if (node.try_send(node_greeting("a worker joins"), std::chrono::seconds(10))) CHECK(node.ended());
  }
  const wire_client node = fixture.join();
  CHECK(fixture.entrance.first() >= 0);
}
#endif

TEST_CASE("what passes between two nodes arrives, and a promise that is too large ends the link") {
  listener_fixture fixture;
  wire_client node = fixture.join();
  const int inside = fixture.entrance.first();
  REQUIRE(inside >= 0);
  const std::string small = header(5) + "hello";
  const std::string large = header(3u << 20) + std::string(3u << 20, 'x');
  node.send(small + large + small);
  CHECK(read_all(inside, 2 * small.size() + large.size()) == small + large + small);
  ::send(inside, "back", 4, MSG_NOSIGNAL);
  CHECK(node.read_bytes(4) == "back");
  node.send(header(0x40000000));
  CHECK(node.ended());
  CHECK(read_all(inside, 100).size() < 32);
  ::close(inside);
}

TEST_CASE("a link over which no byte comes ends, one over which a message crawls does not") {
  listener_fixture fixture(0.5);
  wire_client node = fixture.join();
  const int inside = fixture.entrance.first();
  REQUIRE(inside >= 0);
  // One message takes four times as long as a peer may stay silent.
  const std::string whole = header(200'000) + std::string(200'000, 'x');
  const auto begun = std::chrono::steady_clock::now();
  for (std::size_t sent = 0; sent < whole.size(); sent += 2'000) {
    node.send(std::string_view(whole).substr(sent, 2'000));
    std::this_thread::sleep_until(begun + std::chrono::milliseconds(sent / 100));
  }
  CHECK(read_all(inside, whole.size()) == whole);
  CHECK(node.ended()); // now the node is silent
  ::close(inside);
}
