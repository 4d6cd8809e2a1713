#include "tests/actors/test_server.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

using namespace parley;
using namespace parley::tests;
using nlohmann::json;

// A session goes on in another process: the server's side, without sockets.

namespace {

constexpr const char* resumable_init = R"({"resume":true})";

config::settings durable(const std::filesystem::path& folder) {
  auto settings = test_server::quick_settings();
  settings.journal.dir = folder.string();
  return settings;
}

/// As a killed process leaves its folder: copied while the process still runs, when nothing waits to be written.
void leave_behind(test_server& core, const std::filesystem::path& from, const std::filesystem::path& to) {
  REQUIRE(eventually([&] { return core.metric("parley_journal_queue_bytes") == "0"; }));
  std::filesystem::remove_all(to);
  std::filesystem::copy(from, to);
  std::filesystem::permissions(to, std::filesystem::perms::owner_all);
}

struct begun_session {
  test_client client;
  std::string id;
  std::string token;
};

/// A session that can be resumed.
begun_session begin_session(test_server& core, const std::string& mode = "audio", std::optional<std::string> id = {}) {
  auto client = core.connect(mode, {}, std::move(id));
  const auto created = client.init(resumable_init);
  return {std::move(client), created["session_id"], created["resume_token"]};
}

/// Begins a chat with the id "mine" and kills its process, whose folder is then `killed`. Returns the resume token.
std::string begin_chat_and_kill(stub_script& script, const temporary_folder& folder) {
  test_server core(durable(folder.path() / "live"));
  core.add_up(script);
  auto client = core.connect("chat", {}, "mine");
  std::string token = client.init(resumable_init)["resume_token"];
  leave_behind(core, folder.path() / "live", folder.path() / "killed");
  return token;
}

/// Stops the thread that logs this message first, until `go_on`.
class pause_at final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
public:
  explicit pause_at(std::string message) : message_(std::move(message)) {}

  std::future<void> reached() { return reached_.get_future(); }
  void go_on() { go_on_.set_value(); }

private:
  void sink_it_(const spdlog::details::log_msg& said) override {
    if (std::string_view(said.payload.data(), said.payload.size()) != message_ || came_.exchange(true)) return;
    reached_.set_value();
    go_on_.get_future().wait();
  }
  void flush_() override {}

  const std::string message_;
  std::atomic<bool> came_{false};
  std::promise<void> reached_;
  std::promise<void> go_on_;
};

/// While it lives, the actors log there.
struct own_log {
  explicit own_log(spdlog::sink_ptr to) {
    spdlog::register_logger(std::make_shared<spdlog::logger>("actors", std::move(to)));
  }
  ~own_log() { spdlog::drop("actors"); }
  own_log(const own_log&) = delete;
  own_log& operator=(const own_log&) = delete;
};

std::size_t logs_in(const std::filesystem::path& folder) {
  std::size_t found = 0;
  for (const auto& each : std::filesystem::directory_iterator(folder)) found += each.path().extension() == ".session";
  return found;
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

} // namespace

TEST_CASE("a conversation goes on in another process") {
  const temporary_folder folder;
  const auto killed = folder.path() / "killed";
  stub_script first;
  count_units(first);
  std::string id;
  std::string token;
  {
    test_server core(durable(folder.path() / "live"));
    core.add_up(first);
    auto begun = begin_session(core);
    auto& client = begun.client;
    id = begun.id;
    token = begun.token;
    CHECK(client.step()["text"] == "word 0");
    CHECK(client.step()["text"] == "word 1");
    leave_behind(core, folder.path() / "live", killed);
    CHECK(client.close_session() == "user_stop");
    CHECK(core.all_free());
    CHECK(eventually([&] { return logs_in(folder.path() / "live") == 0; }));
  }
  const auto log = content_of(killed / (id + ".session"));
  CHECK(log.size() > 1000);
  CHECK(log.find(token) == std::string::npos);
  CHECK((std::filesystem::status(killed / (id + ".session")).permissions() & std::filesystem::perms::mask) ==
        (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));

  stub_script second;
  count_units(second);
  test_server core(durable(killed));
  core.add_up(second);
  auto client = core.come_back(id, token, "2");
  const auto resumed = client.link->next("session.resumed");
  CHECK(resumed["inputs"] == 2);
  CHECK(resumed["resent"] == 1);
  const auto resent = client.link->next("response.output.delta");
  CHECK(resent["text"] == "word 1");
  CHECK(resent["event_id"] == 3);
  const auto next = client.step();
  CHECK(next["text"] == "word 2");
  CHECK(next["event_id"] == 4);
  CHECK(next["chunk_index"] == 2);
  CHECK(core.metric("parley_journal_taken_up_total") == "1");
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
  CHECK(eventually([&] { return logs_in(killed) == 0; }));
}

TEST_CASE("a session that was taken up is kept for a third process") {
  const temporary_folder folder;
  stub_script script;
  count_units(script);
  std::string id;
  std::string token;
  {
    test_server core(durable(folder.path() / "0"));
    core.add_up(script);
    auto begun = begin_session(core);
    auto& client = begun.client;
    id = begun.id;
    token = begun.token;
    client.step();
    leave_behind(core, folder.path() / "0", folder.path() / "1");
  }
  for (int process = 1; process <= 3; ++process) {
    test_server core(durable(folder.path() / std::to_string(process)));
    core.add_up(script);
    auto client = core.come_back(id, token, std::to_string(process + 1));
    const auto resumed = client.link->next("session.resumed");
    CHECK(resumed["inputs"] == process);
    CHECK(resumed["resent"] == 0);
    token = resumed["resume_token"];
    CHECK(client.step()["text"] == "word " + std::to_string(process));
    leave_behind(core, folder.path() / std::to_string(process), folder.path() / std::to_string(process + 1));
  }
}

TEST_CASE("only the right client takes a session of an earlier process up, and only once") {
  const temporary_folder folder;
  stub_script script;
  const auto token = begin_chat_and_kill(script, folder);
  test_server core(durable(folder.path() / "killed"));
  core.add_up(script);
  const auto refused = [&](const std::string& id, const std::string& shown, const std::string& key = "") {
    auto other = core.come_back(id, shown, "1", key);
    CHECK(other.link->next("error")["error"]["code"] == "resume_refused");
    CHECK(other.link->closed() == 1008);
    other.send_text("{}");
    other.vanish();
  };
  refused("mine", "resume_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
  refused("nobody", token);
  refused("mine", token, "another key");
  auto thief = core.connect("audio", {}, "mine"); // the id is in use
  CHECK(thief.link->next("error")["error"]["code"] == "invalid_payload");
  CHECK(thief.link->closed() == 1008);

  auto one = core.come_back("mine", token, "1");
  auto two = core.come_back("mine", token, "1"); // the token stays valid until the client sends something
  two.send_text(chat_frame("Hi"));
  CHECK(one.link->closed() == 1008);
  CHECK(two.link->next("session.resumed")["inputs"] == 0);
  CHECK(two.link->next("response.done")["text"] == "Hello there.");
  CHECK(core.metric("parley_journal_taken_up_total") == "1");
  CHECK(two.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a connection that comes while a session is taken up for another one keeps it") {
  const temporary_folder folder;
  stub_script script;
  const auto token = begin_chat_and_kill(script, folder);
  const auto pause = std::make_shared<pause_at>("taken up");
  const own_log watched(pause);
  test_server core(durable(folder.path() / "killed"));
  core.add_up(script);
  auto one = core.come_back("mine", token, "1");
  REQUIRE(pause->reached().wait_for(std::chrono::seconds(30)) == std::future_status::ready);
  auto two = core.come_back("mine", token, "1"); // the session lives, but `one` has not been offered to it
  pause->go_on();
  CHECK(two.link->next("session.resumed")["inputs"] == 0);
  CHECK(one.link->closed() == 1008);
  two.send_text(chat_frame("Hi"));
  CHECK(two.link->next("response.done")["text"] == "Hello there.");
  CHECK(two.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("events that the log does not know of come only once") {
  const temporary_folder folder;
  const auto killed = folder.path() / "killed";
  stub_script script;
  count_units(script);
  std::string id;
  std::string token;
  {
    test_server core(durable(folder.path() / "live"));
    core.add_up(script);
    auto begun = begin_session(core);
    auto& client = begun.client;
    id = begun.id;
    token = begun.token;
    client.step();
    leave_behind(core, folder.path() / "live", killed);
    client.step(); // its client has this answer, but the copied log has not
  }
  test_server core(durable(killed));
  core.add_up(script);
  auto client = core.come_back(id, token, "3");
  const auto resumed = client.link->next("session.resumed");
  CHECK(resumed["inputs"] == 1);
  CHECK(resumed["resent"] == 0);
  client.send_text(append_frame()); // again, as `inputs` asks
  client.send_text(append_frame());
  const auto next = client.link->next("response.output.delta");
  CHECK(next["text"] == "word 2");
  CHECK(next["event_id"] == 4);
  CHECK(client.close_session() == "user_stop");
}

TEST_CASE("a session that a process ends in between is handed over, others drain") {
  const temporary_folder folder;
  stub_script script;
  count_units(script);
  auto settings = durable(folder.path() / "live");
  std::string id;
  std::string token;
  {
    test_server core(settings);
    core.add_up(script);
    auto plain = core.connect("audio");
    plain.init();
    auto begun = begin_session(core);
    auto& client = begun.client;
    id = begun.id;
    token = begun.token;
    client.step();
    core.core().drain();
    const auto away = client.link->next("session.go_away");
    CHECK(away["reason"] == "server_restart");
    CHECK(away["retry_after_ms"] == 1000);
    CHECK(away["event_id"] == 3);
    CHECK(client.link->closed() == 1012);
    CHECK(plain.link->next("session.closed")["reason"] == "server_shutdown");
    auto early = core.come_back(id, token, "3");
    CHECK(early.link->next("error")["error"]["code"] == "service_unavailable");
    CHECK(early.link->closed() == 1013);
  }
  CHECK(logs_in(folder.path() / "live") == 1);
  test_server core(settings);
  core.add_up(script);
  auto client = core.come_back(id, token, "3");
  CHECK(client.link->next("session.resumed")["resent"] == 0);
  CHECK(client.step()["text"] == "word 1");
  CHECK(client.close_session() == "user_stop");
}

TEST_CASE("what cannot be resumed leaves nothing on the disk") {
  const temporary_folder folder;
  stub_script script;
  test_server core(durable(folder.path() / "live"));
  core.add_up(script);
  auto plain = core.connect("audio");
  plain.init();
  plain.step();
  auto waiting = core.connect("audio");
  CHECK(core.metric("parley_journal_bytes_total") == "0");
  CHECK(logs_in(folder.path() / "live") == 0);
  CHECK(plain.close_session() == "user_stop");
  waiting.vanish();
}

TEST_CASE("a disk that refuses ends no session") {
  const temporary_folder folder;
  stub_script script;
  const auto live = folder.path() / "live";
  test_server core(durable(live));
  core.add_up(script);
  auto client = core.connect("audio");
  const std::string id = client.init(resumable_init)["session_id"];
  client.step();
  REQUIRE(eventually([&] { return core.metric("parley_journal_queue_bytes") == "0"; }));
  SECTION("removed while running") {
    std::filesystem::remove_all(live);
  }
  SECTION("its file is removed") {
    std::filesystem::remove(live / (id + ".session"));
  }
  client.step();
  CHECK(eventually([&] { return core.metric("parley_journal_lost_sessions_total") == "1"; }));
  client.step();
  CHECK(core.metric("parley_journal_sessions") == "0");
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a folder that can no longer be written ends no session") {
  const temporary_folder folder;
  stub_script script;
  const auto live = folder.path() / "live";
  test_server core(durable(live));
  core.add_up(script);
  auto client = core.connect("audio");
  client.init(resumable_init);
  REQUIRE(eventually([&] { return core.metric("parley_journal_queue_bytes") == "0"; })); // its file is open
  const bool root = ::geteuid() == 0;                                                    // modes do not hold for root
  std::filesystem::permissions(live, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  if (root) REQUIRE(::seteuid(65534) == 0);
  auto late = core.connect("audio");
  late.init(resumable_init);
  const bool counted = eventually([&] { return core.metric("parley_journal_lost_sessions_total") == "1"; });
  if (root) REQUIRE(::seteuid(0) == 0);
  std::filesystem::permissions(live, std::filesystem::perms::owner_all);
  CHECK(counted);
  late.step();
  client.step(); // its file was open
  CHECK(core.metric("parley_journal_sessions") == "1");
  CHECK(late.close_session() == "user_stop");
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("a disk that is too slow is not waited for") {
  const temporary_folder folder;
  stub_script script;
  auto settings = durable(folder.path() / "live");
  settings.journal.queue_bytes = 4096; // one second of sound exceeds it
  test_server core(settings);
  core.add_up(script);
  auto client = core.connect("audio");
  client.init(resumable_init);
  client.step();
  client.step();
  CHECK(core.metric("parley_journal_lost_sessions_total") == "1");
  CHECK(eventually([&] { return logs_in(folder.path() / "live") == 0; }));
  CHECK(client.close_session() == "user_stop");
}

TEST_CASE("a folder that is of no use is refused in words") {
  const temporary_folder folder;
  test_server core(durable(folder.path() / "live"));
  CHECK_THROWS_WITH(test_server(durable(folder.path() / "live")), Catch::Contains("another process uses it"));
  const auto open = folder.path() / "open";
  std::filesystem::create_directory(open);
  std::filesystem::permissions(open, std::filesystem::perms::all);
  CHECK_THROWS_WITH(test_server(durable(open)), Catch::Contains("others may read it"));
  CHECK_THROWS_WITH(test_server(durable("/proc/nothing")), Catch::Contains("journal.dir"));
}

TEST_CASE("damaged logs are left out, old ones removed, and those of clients who stay away") {
  const temporary_folder folder;
  const auto live = folder.path() / "live";
  stub_script script;
  std::filesystem::create_directory(live);
  std::filesystem::permissions(live, std::filesystem::perms::owner_all);
  std::ofstream(live / "damaged.session") << "PARLEYSL, it says";
  std::ofstream(live / "empty.session") << "";
  std::ofstream(live / "old.session") << "old";
  std::filesystem::last_write_time(live / "old.session",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto killed = folder.path() / "killed";
  {
    test_server core(durable(live));
    CHECK_FALSE(std::filesystem::exists(live / "old.session"));
    core.add_up(script);
    auto client = core.connect("audio");
    client.init(resumable_init);
    leave_behind(core, live, killed);
  }
  auto settings = durable(killed);
  settings.limits.resume_seconds = 0.05;
  test_server core(settings);
  core.add_up(script);
  CHECK(eventually([&] { return logs_in(killed) == 2; })); // the damaged ones, for somebody to look at
}

TEST_CASE("what waits for its client is not removed because the clock was set, and pipes make nobody wait") {
  const temporary_folder folder;
  stub_script script;
  const auto token = begin_chat_and_kill(script, folder);
  const auto killed = folder.path() / "killed";
  std::filesystem::last_write_time(killed / "mine.session",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(24 * 365));
  for (const auto* name : {"pipe.session", "pipe.copy"}) REQUIRE(::mkfifo((killed / name).c_str(), 0600) == 0);
  test_server core(durable(killed));
  core.add_up(script);
  auto client = core.come_back("mine", token, "1");
  CHECK(client.link->next("session.resumed")["inputs"] == 0);
  CHECK(client.close_session() == "user_stop");
}
