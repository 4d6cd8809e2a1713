#include "actors/session_registry.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using actors::session_registry;
using protocol::mode;
using protocol::session_state;

TEST_CASE("ids are unique among live sessions and remembered afterwards") {
  session_registry registry;
  auto first = registry.add({});
  auto second = registry.add({});
  const auto made = [](std::string id) { return [id] { return id; }; };
  CHECK(first->claim("a", made("rt_1")) == "rt_1");
  CHECK_FALSE(second->claim("a", made("rt_2")));
  CHECK_FALSE(registry.find("rt_2").known);
  CHECK(registry.find("rt_1").session.has_value());
  first->update(mode::audio, session_state::closed);
  CHECK(registry.find("a").known);
  CHECK_FALSE(registry.find("a").session.has_value());
  CHECK(second->claim("a", made("rt_2")) == "rt_2");
  CHECK(registry.find("a").session.has_value());
  CHECK_FALSE(registry.find("nobody").known);
}

TEST_CASE("a client that asks for the ids that the server gives takes them from nobody") {
  session_registry registry;
  auto squatter = registry.add({});
  auto another = registry.add({});
  auto victim = registry.add({});
  int last = 0;
  const auto next = [&] { return "rt_" + std::to_string(++last); };
  CHECK(squatter->claim("rt_3", next) == "rt_1");
  CHECK(another->claim("rt_4", next) == "rt_2");
  CHECK(victim->claim("b", next) == "rt_5");
  CHECK(registry.find("b").session.has_value());
  // A client may even ask for the id that would have been generated for it next.
  auto lucky = registry.add({});
  CHECK(lucky->claim("rt_6", next) == "rt_6");
}

TEST_CASE("a session is live until it is closed, and among all until its actor ends") {
  session_registry registry;
  auto entry = registry.add({});
  CHECK(registry.live() == 1);
  CHECK_FALSE(registry.wait_until_none_lives(std::chrono::milliseconds(1)));
  entry->update(mode::audio, session_state::closed);
  CHECK(registry.live() == 0);
  CHECK(registry.all().size() == 1);
  CHECK(registry.wait_until_none_lives(std::chrono::milliseconds(1)));
  entry.reset();
  CHECK(registry.all().empty());
  registry.add({}).reset();
  CHECK(registry.live() == 0);
}

TEST_CASE("live sessions are counted by mode and state") {
  session_registry registry;
  std::vector<std::unique_ptr<session_registry::entry>> entries;
  for (int i = 0; i < 5; ++i) entries.push_back(registry.add({}));
  entries[0]->update(mode::audio, session_state::active);
  entries[1]->update(mode::audio, session_state::active);
  entries[2]->update(mode::chat, session_state::queued);
  entries[3]->update(mode::chat, session_state::closed);
  int all = 0;
  for (const auto& count : registry.counts()) {
    all += count.sessions;
    if (count.kind == mode::audio) CHECK((count.state == session_state::active && count.sessions == 2));
    if (count.kind == mode::chat) CHECK((count.state == session_state::queued && count.sessions == 1));
  }
  CHECK(all == 4);
}

TEST_CASE("the memory of closed sessions is bounded") {
  session_registry registry;
  for (int i = 0; i < 30'000; ++i) {
    auto entry = registry.add({});
    entry->claim("s" + std::to_string(i), [i] { return "rt_" + std::to_string(i); });
  }
  CHECK(registry.find("s29999").known);
  CHECK_FALSE(registry.find("s0").known);
}
