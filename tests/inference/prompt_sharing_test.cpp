#include "tests/inference/engine_fixture.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <map>
#include <memory>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

constexpr auto sharers = 50;
constexpr auto page = llm::kv_pool::page_tokens;

/// Spoken words as a reference voice, ten rows a second. Each call returns a new recording.
pcm voice(int seconds, int from = 0) {
  const auto begin = spoken_words().begin() + std::ptrdiff_t{from} * 16000;
  return std::make_shared<const std::vector<float>>(begin, begin + std::ptrdiff_t{seconds} * 16000);
}

const std::string persona = "You are a helpful assistant who answers in few words, and who listens before it speaks.";

void open_as(engine_fixture& h, session_id id, const std::string& prompt, pcm recording,
             duplex_options how = lively(1)) {
  h.engine.handle(open_duplex{id, prompt, how, std::move(recording), nullptr, 100 + id});
}

int used_pages(const engine_fixture& h) {
  return h.total_pages() - h.engine.free_pages();
}

} // namespace

TEST_CASE("fifty sessions hold one copy of their common prompt") {
  engine_fixture h(sharers, 512);
  open_as(h, 1, persona, voice(12));
  h.run();
  REQUIRE(h.all<opened>().size() == 1);
  const auto first = h.all<opened>()[0];
  REQUIRE(first.prompt_tokens > 2 * page);
  const auto whole = first.prompt_tokens / page;
  CHECK(used_pages(h) == whole + 1);
  for (session_id id = 2; id <= sharers; ++id) open_as(h, id, persona, voice(12));
  CHECK(h.all<opened>().size() == sharers); // immediately: there was nothing to compute
  for (const auto& o : h.all<opened>()) {
    CHECK(o.prompt_tokens == first.prompt_tokens);
    CHECK(o.prompt_usage.input_text == first.prompt_usage.input_text);
    CHECK(o.prompt_usage.input_audio == 120);
  }
  CHECK(used_pages(h) == whole + 2); // the last page of the first session, and the shared one of the others
  CHECK(h.engine.capacity().prompt_hits == sharers - 1);
  CHECK(h.engine.capacity().prompt_misses == 1);
  for (session_id id = 1; id <= sharers; ++id) h.unit(id, 1, second(static_cast<int>(id)));
  h.run();
  CHECK(h.all<failed>().empty());
  auto longest = 0;
  for (const auto& o : h.all<step_output>()) longest = std::max(longest, o.metrics.kv_cache_length);
  CHECK(used_pages(h) <= whole + sharers * ((longest + page - 1) / page - whole));
  for (session_id id = 1; id <= sharers; ++id) h.engine.handle(close_session{id});
  h.check_empty({});
}

TEST_CASE("who shares a prompt is answered as if it had it alone") {
  constexpr session_id people = 5;
  constexpr auto units = 9;
  const auto drive = [](engine_fixture& h, std::vector<session_id> who) {
    for (auto id : who) open_as(h, id, persona, voice(8), lively(static_cast<int>(id)));
    for (auto u = 0; u < units; ++u) {
      for (auto id : who) {
        auto sound = second(u + static_cast<int>(id) * 3);
        if (u == 3 && id == 2) // this unit fails and is taken back
          sound = std::make_shared<const std::vector<float>>(16000, std::numeric_limits<float>::quiet_NaN());
        h.unit(id, static_cast<std::uint64_t>(u), std::move(sound));
      }
      h.run();
    }
  };
  engine_fixture together(people);
  drive(together, {3, 0, 4, 1, 2}); // the windows of 3 and 4 slide
  CHECK(together.engine.capacity().prompt_misses == 1);
  for (session_id id = 0; id < people; ++id) {
    engine_fixture alone(1);
    drive(alone, {id});
    CHECK(together.told(id) == alone.told(id));
    CHECK(alone.told(id).size() == units);
  }
  together.check_empty({0, 1, 2, 3, 4});
}

TEST_CASE("prompts differ by words and by voice, and a voice is known under other words") {
  engine_fixture all(6, 512);
  open_as(all, 1, persona, voice(5));
  open_as(all, 2, persona, voice(5, 7));
  open_as(all, 3, persona, nullptr);
  open_as(all, 4, persona + " Be kind.", voice(5));
  open_as(all, 5, persona, std::make_shared<const std::vector<float>>()); // the same as no voice
  all.run();
  CHECK(all.engine.capacity().prompt_misses == 4);
  CHECK(all.engine.capacity().prompt_hits == 1);
  engine_fixture alone(1, 512);
  open_as(alone, 4, persona + " Be kind.", voice(5));
  for (auto* h : {&all, &alone}) {
    h->unit(4, 1, second(4));
    h->run();
  }
  CHECK(all.told(4) == alone.told(4));
  all.check_empty({1, 2, 3, 4, 5});
}

TEST_CASE("who comes while the same prompt is being made waits for it; when its maker goes, the next one makes it") {
  engine_fixture h(4, 1024);
  for (session_id id = 1; id <= 4; ++id) open_as(h, id, persona, voice(20));
  h.engine.advance();
  CHECK(h.all<opened>().empty());
  CHECK(h.engine.capacity().prompt_misses == 1);
  h.engine.handle(close_session{1});
  h.engine.handle(close_session{3});
  h.run();
  REQUIRE(h.all<opened>().size() == 2);
  CHECK(h.engine.capacity().prompt_misses == 2);
  CHECK(h.engine.capacity().prompt_hits == 1);
  // A prompt that does not fit is refused for both sessions.
  const std::string much(9000, 'x');
  open_as(h, 5, much, nullptr);
  open_as(h, 6, much, nullptr);
  h.run();
  CHECK(h.all<failed>().size() == 2);
  h.check_empty({2, 4});
}

TEST_CASE("who waits for a prompt shares its maker's voice, so that no samples are compared again") {
  engine_fixture h(2, 1024);
  open_as(h, 1, persona, voice(20));
  auto same = voice(20);
  const std::weak_ptr own = same;
  open_as(h, 2, persona, std::move(same));
  h.engine.advance();
  CHECK(h.all<opened>().empty());
  CHECK(own.expired());
  h.run();
  CHECK(h.all<opened>().size() == 2);
  CHECK(h.engine.capacity().prompt_hits == 1);
  h.check_empty({1, 2});
}

TEST_CASE("kept prompts make room for sessions") {
  engine_fixture h(2, 256); // eight pages
  for (auto round = 0; round < 30; ++round) {
    const auto id = static_cast<session_id>(round);
    open_as(h, id, persona + std::to_string(round), voice(6, round % 20));
    h.run();
    h.check_empty({id});
  }
  duplex_options silent;
  silent.force_listen_count = 1000;
  open_as(h, 100, persona, nullptr, silent);
  open_as(h, 101, persona + "!", nullptr, silent);
  for (auto u = 0; u < 30; ++u)
    for (session_id id : {100, 101}) {
      h.unit(id, static_cast<std::uint64_t>(u), second(u));
      h.run();
    }
  for (const auto& f : h.all<failed>()) CHECK(f.kind == failure_kind::context_full);
  for (const auto& line : {h.told(100).back(), h.told(101).back()}) CHECK(line.ends_with("failed 1"));
  h.check_empty({100, 101});
}
