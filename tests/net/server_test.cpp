#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <iterator>
#include <thread>

using namespace parley::net;
using std::chrono::milliseconds;

namespace {

auto count(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return std::distance(begin(entries), end(entries));
}

} // namespace

TEST_CASE("a server tells where it is") {
  server_fixture fixture;
  CHECK(fixture.start().url() == "http://127.0.0.1:" + std::to_string(fixture.start().port()));
  server_fixture everywhere;
  everywhere.options.host = "0.0.0.0";
  CHECK(everywhere.start().url() == "http://127.0.0.1:" + std::to_string(everywhere.start().port()));
  CHECK(fixture.start().port() != 0);
}

TEST_CASE("a taken port is told with its address") {
  server_fixture first;
  server_fixture second;
  second.options.port = first.start().port();
  CHECK_THROWS_WITH(second.start(), Catch::Contains("127.0.0.1:" + std::to_string(second.options.port)));
  second.options.host = "no such host";
  CHECK_THROWS_AS(second.start(), std::system_error);
}

TEST_CASE("a port is free for the next server at once") {
  std::uint16_t port = 0;
  {
    server_fixture first;
    port = first.start().port();
    wire_client client = first.open();
  }
  server_fixture second;
  second.options.port = port;
  CHECK(second.open().try_send("", milliseconds(0)));
}

TEST_CASE("stop waits for links that close by themselves") {
  server_fixture fixture;
  wire_client client = fixture.open();
  wire_client idle = fixture.connect();
  CHECK(idle.get("/health").status == 200);
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 1; }));
  std::thread stop([&] { fixture.start().stop(std::chrono::seconds(60)); });
  CHECK(idle.ended()); // the idle connection has no request under way
  client.send_frame(wire_client::text, "one more");
  CHECK(client.read_data().payload == "one more");
  fixture.gateway.at(0).link->close(1001, "server_shutdown");
  CHECK(client.read_close() == 1001);
  CHECK(client.ended());
  stop.join();
  CHECK(fixture.gateway.at(0).gone);
  CHECK_THROWS(fixture.connect());
}

TEST_CASE("stop cuts what is left at the end of its grace") {
  server_fixture fixture;
  wire_client quiet = fixture.open();
  wire_client half = fixture.connect();
  half.send("GET /hea");
  wire_client busy = fixture.open();
  busy.shrink_receive_buffer();
  CHECK(fixture.gateway.eventually([](auto& sessions) { return sessions.size() == 2; }));
  for (int i = 0; i < 100; ++i) fixture.gateway.at(1).link->send(std::make_shared<const std::string>(50'000, 'x'));
  fixture.start().stop(milliseconds(50));
  CHECK(fixture.start().connections() == 0);
  CHECK(fixture.gateway.open() == 0);
  CHECK(quiet.ended());
  fixture.start().stop(milliseconds(50)); // a second stop does nothing
}

TEST_CASE("a stopped server leaves no thread and no descriptor") {
  {
    server_fixture warm_up;
    warm_up.open();
  }
  const auto threads = count("/proc/self/task");
  const auto files = count("/proc/self/fd");
  {
    server_fixture fixture({}, 3);
    wire_client first = fixture.open();
    wire_client second = fixture.connect();
    CHECK(count("/proc/self/task") == threads + 4); // one thread for reading long bodies
  }
  CHECK(count("/proc/self/task") == threads);
  CHECK(count("/proc/self/fd") == files);
}

TEST_CASE("an answer that comes after the server is gone goes nowhere") {
  struct late_gateway final : parley::actors::gateway_api {
    std::unique_ptr<parley::actors::session_handle> admit(parley::actors::connection_info,
                                                          std::shared_ptr<parley::actors::client_link>) override {
      return nullptr;
    }
    std::unique_ptr<parley::actors::guest_handle> admit_guest(parley::actors::connection_info,
                                                              std::shared_ptr<parley::actors::guest_link>) override {
      return nullptr;
    }
    parley::actors::readiness ready() const override { return {}; }
    bool loading() const override { return false; }
    void status(std::function<void(std::string)> done, parley::actors::status_part) override {
      const std::lock_guard lock(mutex);
      late = std::move(done);
      asked.notify_all();
    }
    void metrics(std::function<void(std::string)>) override {}
    std::string sessions(const parley::actors::principal&) override { return "[]"; }
    void close_session(std::string, std::string, parley::actors::principal,
                       std::function<void(parley::actors::close_answer)>) override {}
    void close_sessions_of(const std::string&, const std::string&) override {}
    void move_session(std::string, std::function<void(bool)>) override {}
    void drain_worker(std::uint64_t, bool, std::function<void(bool)>) override {}
    std::mutex mutex;
    std::condition_variable asked;
    std::function<void(std::string)> late;
  } gateway;
  {
    server server({}, gateway);
    wire_client client(server.port());
    client.send("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    std::unique_lock lock(gateway.mutex);
    REQUIRE(gateway.asked.wait_for(lock, std::chrono::seconds(10), [&] { return gateway.late != nullptr; }));
    lock.unlock();
    server.stop(milliseconds(0));
    gateway.late("{}");
  }
}
