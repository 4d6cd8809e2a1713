#include "tests/actors/test_server.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

using namespace parley;
using namespace parley::tests;

// Gateways that keep copies of one another's sessions, linked by plain sockets of this process.

namespace {

/// The way from one gateway to another, which can be cut.
class way_to_peer {
public:
  explicit way_to_peer(actors::server_core& to) : to_(to) {}

  actors::node_dialer dialer() {
    return [this](const std::function<void(actors::dialled)>& done) {
      const std::lock_guard lock(mutex_);
      int ends[2];
      if (cut_ || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return done(actors::dial_failure{"the way is cut", false});
      actors::node_socket near(ends[0]);
      twins_.push_back(near.twin());
      to_.admit_node(actors::node_socket(ends[1]), "test");
      done(std::move(near));
    };
  }

  void cut(bool now) {
    const std::lock_guard lock(mutex_);
    cut_ = now;
    if (!now) return;
    for (auto& each : twins_) each.hang_up();
    twins_.clear();
  }

private:
  actors::server_core& to_;
  std::mutex mutex_;
  bool cut_ = false;
  std::vector<actors::node_socket> twins_;
};

config::settings peer_settings(const std::filesystem::path& folder) {
  auto settings = test_server::quick_settings();
  settings.journal.dir = folder.string();
  settings.nodes.rejoin_seconds = 0.1;
  return settings;
}

constexpr auto nodes_may_join = actors::server_core::nodes::may_join;

/// Two gateways, of which the second keeps copies of the first one's sessions.
struct pair_of_gateways {
  explicit pair_of_gateways(stub_script& script)
      : second(peer_settings(folder.path() / "second"), nodes_may_join), there(second.core()),
        first(peer_settings(folder.path() / "first"), nodes_may_join) {
    first.add_up(script);
    second.add_up(script);
    first.core().copy_to_peers({there.dialer()}, "first");
  }

  bool copied(int sessions) {
    return eventually([&] {
      return first.metric("parley_journal_queue_bytes") == "0" &&
             first.metric("parley_journal_copy_behind_bytes") == "0" &&
             first.metric("parley_journal_copied_sessions") == std::to_string(sessions) &&
             copies() == static_cast<std::size_t>(sessions);
    });
  }

  std::size_t copies() const {
    std::size_t found = 0;
    for (const auto& each : std::filesystem::directory_iterator(folder.path() / "second"))
      found += each.path().extension() == ".copy";
    return found;
  }

  temporary_folder folder;
  test_server second;
  way_to_peer there;
  test_server first;
};

} // namespace

TEST_CASE("a conversation goes on at the gateway that keeps its copy, and the first one ends it") {
  stub_script script;
  count_units(script);
  pair_of_gateways both(script);
  auto client = both.first.connect("audio");
  const auto created = client.init(R"({"resume":true})");
  auto plain = both.first.connect("audio");
  plain.init();
  client.step();
  REQUIRE(both.copied(1));
  const std::string id = created["session_id"];
  const std::string token = created["resume_token"];

  SECTION("while the gateways are linked") {
    auto back = both.second.come_back(id, token, "2");
    CHECK(back.link->next("session.resumed")["inputs"] == 1);
    CHECK(client.link->next("session.closed")["reason"] == "taken_up_elsewhere");
    CHECK(client.link->closed() == 1000);
    client.vanish();
    CHECK(back.step()["text"] == "word 1");
    CHECK(back.close_session() == "user_stop");
  }
  SECTION("while the first one is cut off, and then comes back with a newer log") {
    both.there.cut(true);
    auto back = both.second.come_back(id, token, "2");
    CHECK(back.link->next("session.resumed")["inputs"] == 1);
    CHECK(back.step()["text"] == "word 1");
    client.step(); // two gateways own it
    both.there.cut(false);
    CHECK(client.link->next("session.closed")["reason"] == "taken_up_elsewhere");
    client.link->closed();
    client.vanish();
    CHECK(back.step()["text"] == "word 2");
    CHECK(back.close_session() == "user_stop");
  }
  SECTION("even if it is over there when the first one comes back") {
    both.there.cut(true);
    auto back = both.second.come_back(id, token, "2");
    CHECK(back.link->next("session.resumed")["inputs"] == 1);
    CHECK(back.close_session() == "user_stop");
    CHECK(both.second.all_free());
    both.there.cut(false);
    CHECK(client.link->next("session.closed")["reason"] == "taken_up_elsewhere");
    client.link->closed();
    client.vanish();
  }
  plain.step(); // others notice nothing
  CHECK(plain.close_session() == "user_stop");
  CHECK(both.first.all_free());
  CHECK(both.second.all_free());
  CHECK(eventually([&] { return both.copies() == 0; }));
  CHECK(both.second.metric("parley_journal_taken_up_total") == "1");
}

TEST_CASE("an id that is used again is another session") {
  stub_script script;
  pair_of_gateways both(script);
  auto client = both.first.connect("audio", {}, "mine");
  const std::string token = client.init(R"({"resume":true})")["resume_token"];
  REQUIRE(both.copied(1));
  auto back = both.second.come_back("mine", token, "1");
  back.link->next("session.resumed");
  client.link->closed();
  client.vanish();
  CHECK(back.close_session() == "user_stop");
  CHECK(both.first.all_free());
  auto other = both.first.connect("audio", {}, "mine");
  other.init(R"({"resume":true})");
  other.step();
  CHECK(both.copied(1));
  other.step();
  CHECK(other.close_session() == "user_stop");
}

TEST_CASE("an id that two owners chose at two gateways stays with the session that lives there") {
  stub_script script;
  pair_of_gateways both(script);
  auto other = both.second.connect("audio", {}, "mine", {}, "his");
  other.init(R"({"resume":true})");
  auto client = both.first.connect("audio", {}, "mine", {}, "hers");
  const std::string token = client.init(R"({"resume":true})")["resume_token"];
  REQUIRE(both.copied(1));
  auto back = both.second.come_back("mine", token, "1", "hers");
  CHECK(back.link->next("error")["error"]["code"] == "resume_refused");
  CHECK(back.link->closed() == 1008);
  other.step();
  client.step();
  CHECK(other.close_session() == "user_stop");
  REQUIRE(both.copied(1));
  auto again = both.second.come_back("mine", token, "2", "hers"); // it was not lost
  CHECK(again.link->next("session.resumed")["inputs"] == 1);
  client.link->closed();
  client.vanish();
  CHECK(again.close_session() == "user_stop");
  CHECK(both.first.all_free());
  CHECK(both.second.all_free());
}

TEST_CASE("a copy ends with its session, and is made anew after the link was lost") {
  stub_script script;
  pair_of_gateways both(script);
  auto client = both.first.connect("audio");
  client.init(R"({"resume":true})");
  client.step();
  REQUIRE(both.copied(1));
  both.there.cut(true);
  client.step();
  CHECK(eventually([&] { return both.first.metric("parley_journal_copied_sessions") == "0"; }));
  both.there.cut(false);
  CHECK(both.copied(1));
  CHECK(client.close_session() == "user_stop");
  CHECK(both.copied(0));
}

TEST_CASE("copies are removed when the clients of a lost gateway stay away") {
  const temporary_folder folder;
  stub_script script;
  auto settings = peer_settings(folder.path() / "second");
  settings.limits.resume_seconds = 0.05;
  test_server second(settings, nodes_may_join);
  way_to_peer there(second.core());
  {
    test_server first(peer_settings(folder.path() / "first"), nodes_may_join);
    first.add_up(script);
    first.core().copy_to_peers({there.dialer()}, "first");
    auto client = first.connect("audio");
    client.init(R"({"resume":true})");
    client.step();
    REQUIRE(eventually([&] { return first.metric("parley_journal_copied_sessions") == "1"; }));
    there.cut(true);
  }
  CHECK(eventually([&] {
    for (const auto& each : std::filesystem::directory_iterator(folder.path() / "second"))
      if (each.path().extension() == ".copy") return false;
    return true;
  }));
}

TEST_CASE("a peer that cannot write tells so, and the session goes on") {
  stub_script script;
  pair_of_gateways both(script);
  auto client = both.first.connect("audio");
  client.init(R"({"resume":true})");
  client.step();
  REQUIRE(both.copied(1));
  std::filesystem::remove_all(both.folder.path() / "second");
  client.step();
  CHECK(eventually([&] { return both.first.metric("parley_journal_not_copied_total") == "1"; }));
  CHECK(eventually([&] { return both.first.metric("parley_journal_copy_behind_bytes") == "0"; })); // room for others
  client.step();
  CHECK(both.first.metric("parley_journal_sessions") == "1");
  CHECK(client.close_session() == "user_stop");
  CHECK(both.first.all_free());
}

TEST_CASE("copies need a folder") {
  test_server core(test_server::quick_settings(), nodes_may_join);
  way_to_peer there(core.core());
  CHECK_THROWS_WITH(core.core().copy_to_peers({there.dialer()}, "x"), Catch::Contains("journal.dir"));
}
