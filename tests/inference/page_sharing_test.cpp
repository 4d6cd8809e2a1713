#include "inference/chat/rendered_text.hpp"
#include "tests/inference/engine_fixture.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

constexpr session_id people = 4;
constexpr auto context = 512, units = 24; // a unit takes at least eleven rows

/// All speak to the engine at the same time, each with sounds of its own.
void talk(engine_fixture& h, const std::vector<session_id>& who) {
  for (auto id : who) h.open(id, lively(static_cast<int>(id) % 3), 100 + id);
  h.run();
  for (auto u = 0; u < units; ++u) {
    for (auto id : who) h.unit(id, static_cast<std::uint64_t>(u), second(u + static_cast<int>(id) * 5));
    h.run();
  }
}

} // namespace

TEST_CASE("with too few pages the newest sessions wait, nobody fails, and all are answered in the same words") {
  engine_fixture tight(people, context, {}, 1, able::to_write, 2);
  talk(tight, {4, 2, 1, 3}); // in this order of arrival
  CHECK(tight.all<failed>().empty());
  // Whoever came first never waited, and together they need more than there is.
  CHECK(tight.told(4).size() == units);
  const auto answered = [&](session_id id) { return tight.told(id).size(); };
  REQUIRE(answered(4) + answered(2) + answered(1) + answered(3) < people * units);
  CHECK(answered(2) >= answered(1));
  CHECK(answered(1) >= answered(3));
  // As the older ones leave, the others catch up.
  for (auto id : {4, 2, 1, 3}) {
    REQUIRE(answered(static_cast<session_id>(id)) == units);
    tight.engine.handle(close_session{static_cast<session_id>(id)});
    tight.run();
  }
  CHECK(tight.all<failed>().empty());
  engine_fixture roomy(people, context);
  talk(roomy, {4, 2, 1, 3});
  for (session_id id = 1; id <= people; ++id) CHECK(tight.told(id) == roomy.told(id));
  tight.check_empty({});
}

namespace {

constexpr session_id slid = 3;

/// Three sessions whose windows slide speak at once; those who wait for pages go on when the older ones leave.
void talk_long(engine_fixture& h, const std::string& prompt) {
  for (session_id id = 1; id <= slid; ++id) {
    auto how = lively(static_cast<int>(id) % 3);
    how.window = window_mode::context;
    h.engine.handle(open_duplex{id, prompt, how, nullptr, nullptr, 100 + id});
  }
  for (auto u = 0; u < 40; ++u)
    for (session_id id = 1; id <= slid; ++id)
      h.unit(id, static_cast<std::uint64_t>(u), second(u + static_cast<int>(id) * 5));
  for (session_id id = 1; id <= slid; ++id) {
    h.run();
    h.engine.handle(close_session{id});
  }
  CHECK(h.all<failed>().empty());
}

/// A prompt of this many tokens up to where a slide inserts.
std::string prompt_of(std::int64_t tokens) {
  std::string text = "You are";
  for (;; text += " a") {
    chat::rendered_text prefix;
    prefix.add("<|im_start|>system\n");
    prefix.quote(text);
    prefix.add("\n<|audio_start|>");
    const auto count = std::ssize(model()->text().encode(prefix.text, prefix.quoted));
    REQUIRE(count <= tokens);
    if (count == tokens) return text;
  }
}

} // namespace

TEST_CASE("a session that makes room in the middle of a slide goes on as if it had not") {
  // The first prompt ends within a page, the second on the last row of one, which others share and a slide writes to.
  for (const auto& prompt : {std::string("You are a helpful assistant."), prompt_of(62), prompt_of(63)}) {
    engine_fixture roomy(slid, 1024);
    talk_long(roomy, prompt);
    REQUIRE(roomy.all<step_output>().back().metrics.window_events > 0);
    for (const auto tokens : {704, 768, 832, 896, 960, 1024}) {
      engine_fixture tight(slid, tokens, {}, 1, able::to_write, 1);
      talk_long(tight, prompt);
      for (session_id id = 1; id <= slid; ++id) CHECK(tight.told(id) == roomy.told(id));
    }
  }
}

TEST_CASE("an engine offers no slot that its pages can't carry") {
  engine_fixture h(people, context, {}, 1, able::to_write, 2);
  CHECK(h.engine.capacity().slots == 2);
  for (session_id id = 1; id <= 3; ++id) h.open(id, lively(1), id);
  h.run();
  CHECK(h.engine.capacity().slots == 3); // never fewer than are open
  CHECK(h.all<failed>().empty());
  h.check_empty({1, 2, 3});
  for (session_id id = 4; id < 24; ++id) {
    h.open(id, lively(1), id);
    h.unit(id, 1, second(1));
    h.run();
    h.check_empty({id});
  }
  CHECK(h.engine.capacity().slots > 2); // they were short
}
