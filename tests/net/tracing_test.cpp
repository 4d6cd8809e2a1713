#include "net/beast.hpp"
#include "net/trace/span_exporter.hpp"
#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace parley::net;
using namespace std::chrono_literals;
using nlohmann::json;
using parley::tests::temporary_folder;
namespace trace = parley::protocol::trace;

namespace {

const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const std::string taken = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

/// A collector on loopback that answers one request after another as the test says.
class collector_on_loopback {
public:
  using request = http::request<http::string_body>;

  /// What is written instead of an answer's bytes; called on the collector's thread.
  explicit collector_on_loopback(std::function<void(tcp::socket&, int number)> answer)
      : answer_(std::move(answer)), thread_([this] { serve(); }) {}

  ~collector_on_loopback() {
    over_ = true;
    error_code ignored;
    tcp::socket last(io_);
    last.connect(acceptor_.local_endpoint(), ignored); // ends the wait for the next one
    thread_.join();
  }

  collector where(const std::string& path = "/v1/traces") const {
    return read_collector("http://127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port()) + path);
  }

  /// The request with this number, from 0; waits until it has come.
  request at(std::size_t number) {
    std::unique_lock lock(mutex_);
    if (!came_.wait_for(lock, 10s, [&] { return requests_.size() > number; })) throw std::runtime_error("no request");
    return requests_[number];
  }

  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }

private:
  void serve() {
    for (int number = 0;; ++number) {
      error_code ec;
      tcp::socket socket(io_);
      acceptor_.accept(socket, ec);
      if (ec || over_) return;
      beast::flat_buffer buffer;
      request one;
      http::read(socket, buffer, one, ec);
      if (ec) continue;
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(one);
      }
      came_.notify_all();
      answer_(socket, number);
    }
  }

  std::function<void(tcp::socket&, int)> answer_;
  asio::io_context io_;
  tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<request> requests_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

auto always(std::string bytes) {
  return [bytes = std::move(bytes)](tcp::socket& to, int) {
    error_code ignored;
    asio::write(to, asio::buffer(bytes), ignored);
  };
}

trace::span named(std::string name) {
  trace::span out;
  out.trace.fill(1);
  out.id.fill(2);
  out.name = std::move(name);
  return out;
}

export_options quick(collector to) {
  export_options out;
  out.to = std::move(to);
  out.from = {"1.2.3", {{"service.name", "parley"}}};
  out.gather = 1ms;
  out.retry_after = 1ms;
  return out;
}

bool comes_to(const std::atomic<std::uint64_t>& count, std::uint64_t wanted) {
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (count < wanted) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return count == wanted;
}

std::string server_with(server_fixture& server, const collector& to) {
  server.options.tracing.endpoint = "http://" + to.authority + to.target;
  server.options.tracing.node = "here";
  return server.options.tracing.endpoint;
}

} // namespace

TEST_CASE("spans go to the collector, with the operator's headers") {
  collector_on_loopback server(always(taken));
  const auto counts = std::make_shared<span_counts>();
  auto with = quick(server.where("/somewhere?a=b"));
  with.headers = {{"X-Key", "secret"}};
  span_exporter out(with, counts);
  out.take(named("first"));
  const auto sent = server.at(0);
  CHECK(sent.method() == http::verb::post);
  CHECK(sent.target() == "/somewhere?a=b");
  CHECK(sent[http::field::content_type] == "application/json");
  CHECK(sent[http::field::host] == server.where().authority);
  CHECK(sent["X-Key"] == "secret");
  const auto body = json::parse(sent.body());
  CHECK(body["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["name"] == "first");
  CHECK(comes_to(counts->sent, 1));
  out.replace_headers({{"X-Key", "another"}});
  out.take(named("second"));
  CHECK(server.at(1)["X-Key"] == "another");
}

TEST_CASE("what waits is bounded, and nobody waits for a collector that never answers") {
  std::mutex mutex;
  std::condition_variable changed;
  bool over = false;
  collector_on_loopback server([&](tcp::socket&, int) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return over; });
  });
  const auto counts = std::make_shared<span_counts>();
  auto with = quick(server.where());
  with.most_waiting = 5;
  with.batch = 1;
  span_exporter out(with, counts);
  out.take(named("under way"));
  server.at(0);
  for (int i = 0; i < 8; ++i) out.take(named("waits"));
  CHECK(counts->dropped == 3);
  out.finish(0ms);
  CHECK(counts->failed == 6);
  out.take(named("too late"));
  CHECK(counts->dropped == 4);
  CHECK(counts->sent == 0);
  {
    const std::lock_guard lock(mutex);
    over = true;
  }
  changed.notify_all();
}

TEST_CASE("a request that takes too long is given up, also if its answer has begun") {
  collector_on_loopback server([](tcp::socket& to, int) {
    error_code ignored;
    std::array<char, 1> byte{};
    asio::write(to, asio::buffer("HTTP/1.1 20", 11), ignored);
    to.read_some(asio::buffer(byte), ignored); // until the other side has given up
  });
  const auto counts = std::make_shared<span_counts>();
  auto with = quick(server.where());
  with.timeout = 20ms;
  with.retries = 1;
  span_exporter out(with, counts);
  out.take(named("one"));
  CHECK(comes_to(counts->failed, 1));
  CHECK(server.count() == 2);
}

TEST_CASE("a collector that cannot be reached is counted") {
  std::string address;
  {
    const collector_on_loopback gone(always(taken));
    address = gone.where().authority;
  }
  const auto counts = std::make_shared<span_counts>();
  span_exporter out(quick(read_collector("http://" + address)), counts);
  out.take(named("one"));
  CHECK(comes_to(counts->failed, 1));
}

TEST_CASE("what may go better later is tried again, and nothing else") {
  const auto counts = std::make_shared<span_counts>();
  {
    collector_on_loopback server([](tcp::socket& to, int number) {
      error_code ignored;
      asio::write(to, asio::buffer(number == 0 ? "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n" : taken), ignored);
    });
    span_exporter out(quick(server.where()), counts);
    out.take(named("one"));
    CHECK(comes_to(counts->sent, 1));
    CHECK(server.count() == 2);
    CHECK(server.at(0).body() == server.at(1).body());
  }
  std::uint64_t failed = 0;
  for (const auto* answer : {
           "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n",
           "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n",
           "HTTP/1.1 302 Elsewhere\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
           "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
       }) {
    CAPTURE(answer);
    collector_on_loopback server(always(answer));
    span_exporter out(quick(server.where()), counts);
    out.take(named("one"));
    CHECK(comes_to(counts->failed, ++failed));
    CHECK(server.count() == 1);
  }
}

TEST_CASE("of an answer only the head is read, and not much of that") {
  const auto endless = [](const std::string& head, const std::string& more) {
    return [=](tcp::socket& to, int) {
      error_code ec;
      asio::write(to, asio::buffer(head), ec);
      while (!ec) asio::write(to, asio::buffer(more), ec);
    };
  };
  const auto counts = std::make_shared<span_counts>();
  {
    collector_on_loopback server(
        endless("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", std::string(65536, 'x')));
    span_exporter out(quick(server.where()), counts);
    out.take(named("one"));
    CHECK(comes_to(counts->sent, 1));
  }
  auto with = quick({});
  with.retries = 0;
  std::uint64_t failed = 0;
  for (const std::string& more : {"X-More: " + std::string(1000, 'x') + "\r\n", std::string(1000, 'x')}) {
    collector_on_loopback server(endless("HTTP/1.1 200 OK\r\n", more));
    with.to = server.where();
    span_exporter out(with, counts);
    out.take(named("one"));
    CHECK(comes_to(counts->failed, ++failed));
  }
  {
    collector_on_loopback server(always("SSH-2.0-nonsense\r\n\r\n"));
    with.to = server.where();
    span_exporter out(with, counts);
    out.take(named("one"));
    CHECK(comes_to(counts->failed, ++failed));
  }
}

TEST_CASE("what waits at the end is sent, within the time that there is") {
  collector_on_loopback server(always(taken));
  const auto counts = std::make_shared<span_counts>();
  auto with = quick(server.where());
  with.gather = 1h;
  with.batch = 2;
  span_exporter out(with, counts);
  for (int i = 0; i < 5; ++i) out.take(named("one"));
  out.finish(10s);
  CHECK(counts->sent == 5);
  CHECK(server.count() == 3);
}

TEST_CASE("a collector's address is an URL without surprises") {
  const auto plain = read_collector("http://collector:4318/v1/traces");
  CHECK_FALSE(plain.tls);
  CHECK(plain.host == "collector");
  CHECK(plain.port == "4318");
  CHECK(plain.authority == "collector:4318");
  CHECK(plain.target == "/v1/traces");
  CHECK(read_collector("https://[::1]/x").host == "::1");
  CHECK(read_collector("https://[::1]/x").port == "443");
  CHECK(read_collector("http://a").target == "/v1/traces");
  for (const auto* bad :
       {"collector:4318", "ftp://a/", "http://", "http:///x", "https://[::1]?x=1", "http://user:secret@a/",
        "http://a/#x", "http://a/ b", "http://a/\r\nX: y", "http://a:99999/", "http://a:x/"}) {
    CAPTURE(bad);
    CHECK_THROWS(read_collector(bad));
  }
}

TEST_CASE("headers for the collector come from a file, and no complaint repeats their values") {
  const temporary_folder folder;
  const auto file = folder.path() / "headers";
  const auto write = [&](const std::string& text) { std::ofstream(file) << text; };
  write("# of our collector\n\nAuthorization:  Bearer secret \r\nX-Other: a: b\n");
  CHECK(read_headers(file) == header_list{{"Authorization", "Bearer secret"}, {"X-Other", "a: b"}});
  CHECK(read_headers("").empty());
  CHECK_THROWS(read_headers(folder.path() / "none"));
  std::string many;
  for (int i = 0; i < 17; ++i) many += "X: secret\n";
  for (const std::string& bad :
       {std::string("secret"), std::string("A B: secret"), std::string(": secret"), std::string("A: secret\x01"),
        std::string("Host: secret"), std::string("content-length: secret"), many}) {
    CAPTURE(bad);
    write(bad + "\n");
    try {
      read_headers(file);
      FAIL("it was taken");
    } catch (const std::exception& problem) {
      CHECK(std::string(problem.what()).find("secret") == std::string::npos);
    }
  }
}

TEST_CASE("a request's trace goes to its session, and is handed back") {
  collector_on_loopback collected(always(taken));
  server_fixture server;
  server_with(server, collected.where());
  auto client = server.connect();
  const auto answer =
      client.upgrade("/v1/realtime?mode=audio", "traceparent: " + good + "\r\ntracestate: a=1\r\ntracestate: b=2\r\n");
  REQUIRE(answer.status == 101);
  REQUIRE(server.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  const auto trace = server.gateway.at(0).info.trace;
  REQUIRE(trace);
  CHECK(trace->to);
  CHECK(*trace->state == "a=1,b=2");
  CHECK(answer.header("traceparent") == trace->traceparent());
  CHECK(answer.header("traceparent").starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"));

  for (const std::string& bad :
       {std::string("traceparent: nonsense\r\n"), "traceparent: " + good + "\r\ntraceparent: " + good + "\r\n",
        std::string("tracestate: a=1\r\n"), std::string()}) {
    CAPTURE(bad);
    const auto own = server.connect().upgrade("/v1/realtime?mode=audio", bad);
    REQUIRE(own.status == 101);
    CHECK(own.header("traceparent").size() == good.size());
    CHECK(own.header("traceparent").find("4bf92f") == std::string::npos);
  }

  // A session that is resumed goes on in its own trace.
  const auto back =
      server.connect().upgrade("/v1/realtime?session_id=a&resume_token=b", "traceparent: " + good + "\r\n");
  REQUIRE(back.status == 101);
  CHECK(back.header("traceparent").empty());

  const std::string hi = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";
  auto asks = server.connect();
  const std::size_t before = 6; // of all the upgrades above
  REQUIRE(server.gateway.eventually([&](auto& sessions) { return sessions.size() == before; }));
  asks.send("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\ntraceparent: " + good +
            "\r\nContent-Length: " + std::to_string(hi.size()) + "\r\n\r\n" + hi);
  REQUIRE(server.gateway.eventually([&](auto& sessions) { return sessions.size() > before; }));
  const auto asked = server.gateway.at(before);
  asked.guest->hand_over(parley::protocol::error_event{parley::protocol::error_code::queue_full, "full"});
  asked.guest->close(1013, "full");
  CHECK(asks.read_response().header("traceparent") == asked.info.trace->traceparent());
}

TEST_CASE("nothing is traced unless the operator says so") {
  server_fixture server;
  auto client = server.connect();
  const auto answer = client.upgrade("/v1/realtime?mode=audio", "traceparent: " + good + "\r\n");
  REQUIRE(answer.status == 101);
  CHECK(answer.header("traceparent").empty());
  REQUIRE(server.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  CHECK_FALSE(server.gateway.at(0).info.trace);
}
