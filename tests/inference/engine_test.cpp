#include "base/utf8.hpp"
#include "inference/engine/fingerprint.hpp"
#include "tests/inference/engine_fixture.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <map>
#include <random>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

constexpr auto people = 5;
constexpr auto seconds = 8;

} // namespace

TEST_CASE("sessions together decide as each alone") {
  std::map<session_id, std::vector<std::string>> alone;
  auto drive = [](engine_fixture& h, std::vector<session_id> who) {
    for (auto id : who) h.open(id, lively(static_cast<int>(id)), 100 + id, id == 2 ? second(20) : nullptr);
    for (auto u = 0; u < seconds; ++u) {
      for (auto id : who)
        h.unit(id, static_cast<std::uint64_t>(u), second(u + static_cast<int>(id) * 3), u == 6 && id == 1);
      h.run();
    }
  };
  auto spoken = 0;
  for (session_id id = 0; id < people; ++id) {
    engine_fixture h(1);
    drive(h, {id});
    alone[id] = h.told(id);
    CHECK(alone[id].size() == seconds);
    for (const auto& line : alone[id]) spoken += line.find("say") != std::string::npos;
    h.check_empty({id});
  }
  CHECK(spoken > 5); // with less speech, the test shows little
  engine_fixture h(people);
  drive(h, {3, 0, 4, 1, 2});
  for (session_id id = 0; id < people; ++id) CHECK(h.told(id) == alone[id]);
  h.check_empty({0, 1, 2, 3, 4});
}

TEST_CASE("units that come at different moments change nothing") {
  std::map<session_id, std::vector<std::string>> alone;
  for (session_id id = 0; id < 3; ++id) {
    engine_fixture h(1);
    h.open(id, lively(1), 7);
    for (auto u = 0; u < 5; ++u) h.unit(id, static_cast<std::uint64_t>(u), second(u + static_cast<int>(id)));
    h.run();
    alone[id] = h.told(id);
  }
  engine_fixture h(3);
  std::mt19937 random(1);
  std::vector<int> sent(3);
  for (session_id id = 0; id < 3; ++id) h.open(id, lively(1), 7);
  for (auto passes = 0; passes < 3000; ++passes) {
    auto id = random() % 3;
    if (sent[id] < 5 && random() % 4 == 0) {
      h.unit(id, static_cast<std::uint64_t>(sent[id]), second(sent[id] + static_cast<int>(id)));
      ++sent[id];
    }
    h.engine.advance();
  }
  h.run();
  for (session_id id = 0; id < 3; ++id) CHECK(h.told(id) == alone[id]);
}

TEST_CASE("the same seed gives the same output, another seed another one") {
  auto play = [](std::uint64_t seed) {
    engine_fixture h(2, 2048, {}, seed);
    duplex_options o;
    o.force_listen_count = 0;
    h.open(1, o);
    h.engine.handle(open_chat{2, {}});
    h.engine.handle(ask(2, 1, "hello"));
    for (auto u = 0; u < 6; ++u) h.unit(1, static_cast<std::uint64_t>(u), second(u));
    h.run();
    auto lines = h.told(1);
    auto more = h.told(2);
    lines.insert(lines.end(), more.begin(), more.end());
    return lines;
  };
  auto once = play(11);
  CHECK(once == play(11));
  CHECK(once != play(12));
}

TEST_CASE("the tokens of a unit add up to the growth of its cache") {
  engine_fixture h(1);
  h.open(1, lively(1), 5);
  for (auto u = 0; u < 6; ++u) h.unit(1, static_cast<std::uint64_t>(u), second(u));
  h.run();
  auto opening = h.all<opened>().at(0);
  CHECK(opening.prompt_tokens == opening.prompt_usage.input_text + opening.prompt_usage.input_audio);
  auto total = std::int64_t{opening.prompt_tokens};
  for (const auto& o : h.all<step_output>()) {
    CHECK(o.first);
    CHECK(o.last);
    CHECK(o.used.input_audio == 10);
    total += o.used.input_text + o.used.input_audio + o.used.output_text;
    CHECK(o.metrics.kv_cache_length == total - 2); // terminator and </unit> are fed later
  }
}

TEST_CASE("a cut answers listen and the session goes on") {
  engine_fixture h(1);
  duplex_options o;
  o.force_listen_count = 0;
  o.sampling.greedy = false;
  h.open(1, o, 3);
  h.run();
  auto cuts = 0;
  for (auto u = 0; u < 12; ++u) {
    h.unit(1, static_cast<std::uint64_t>(u), second(u));
    auto answers = h.all<step_output>().size();
    for (auto pass = 0; pass < u % 6 && h.all<step_output>().size() == answers; ++pass) h.engine.advance();
    auto open = h.all<step_output>().size() == answers;
    h.engine.handle(cut{1});
    h.run();
    auto all = h.all<step_output>();
    REQUIRE(all.size() == answers + 1);
    if (open) {
      CHECK(all.back().kind == output_kind::listen);
      CHECK(all.back().text.empty());
      ++cuts;
    }
  }
  CHECK(cuts > 4);
  h.engine.handle(cut{1}); // between steps a cut does nothing
  h.engine.handle(cut{99});
  h.unit(1, 50, second(3));
  h.run();
  CHECK(h.all<step_output>().back().unit == 50);
  h.check_empty({1});
}

TEST_CASE("sessions that close at any point give everything back") {
  for (auto seed = 0U; seed < 12; ++seed) {
    engine_fixture h(4);
    std::mt19937 random(seed);
    for (session_id id = 0; id < 4; ++id) {
      if (id == 3)
        h.engine.handle(open_chat{id, {}});
      else
        h.open(id, lively(static_cast<int>(id) + 2), id, id == 1 ? second(1) : nullptr);
    }
    h.engine.handle(ask(3, 1, "hello", 40));
    for (auto pass = 0U; pass < random() % 40; ++pass) {
      auto id = random() % 3;
      if (random() % 3 == 0) h.unit(id, pass, second(static_cast<int>(pass)));
      h.engine.advance();
    }
    for (session_id id : {2, 0, 3, 1}) {
      h.engine.handle(close_session{id});
      auto count = h.events.size();
      CHECK(std::holds_alternative<closed>(h.events.back()));
      for (auto i = 0U; i < random() % 3; ++i) h.engine.advance();
      for (auto i = count; i < h.events.size(); ++i)
        std::visit([&](const auto& e) { CHECK(e.session != id); }, h.events[i]);
    }
    CHECK_FALSE(h.engine.advance());
    CHECK(h.engine.free_pages() == h.total_pages());
  }
}

TEST_CASE("slots and numbers are respected") {
  engine_fixture h(1);
  h.open(1);
  h.open(2);
  h.open(1);
  h.unit(9, 4, second(0));
  h.engine.handle(ask(1, 5, "x")); // chat in a duplex session
  auto refused = h.all<failed>();
  REQUIRE(refused.size() == 4);
  CHECK(refused[0].session == 2);
  CHECK(refused[2].number == 4);
  CHECK(refused[3].number == 5);
  h.unit(1, 1, std::make_shared<const std::vector<float>>(15999));
  h.unit(1, 2, nullptr);
  h.engine.handle(submit_unit{{second(0), {std::make_shared<const std::string>("jpeg")}, 1, false}, 1, 3});
  h.unit(1, 4, second(0));
  h.run();
  auto after = h.told(1);
  CHECK(std::count_if(after.begin(), after.end(),
                      [](const auto& l) { return l.find("failed 0") != std::string::npos; }) == 3);
  CHECK(after.back().starts_with("4 listen"));
}

TEST_CASE("a session whose sound is not numbers fails alone and goes on") {
  auto drive = [](engine_fixture& h, bool with_bad) {
    h.open(1, lively(1), 5);
    if (with_bad) h.open(2, lively(2), 6);
    for (auto u = 0; u < 5; ++u) {
      h.unit(1, static_cast<std::uint64_t>(u), second(u));
      if (with_bad && u == 2)
        h.unit(2, 2, std::make_shared<const std::vector<float>>(16000, std::numeric_limits<float>::quiet_NaN()));
      else if (with_bad)
        h.unit(2, static_cast<std::uint64_t>(u), second(u));
      h.run();
    }
  };
  engine_fixture good(1), mixed(2);
  drive(good, false);
  drive(mixed, true);
  CHECK(good.told(1) == mixed.told(1));
  auto other = mixed.told(2);
  REQUIRE(other.size() == 5);
  CHECK(other[2] == "2 failed 2");
  CHECK(other[3].find("failed") == std::string::npos);
  CHECK(other[4].find("failed") == std::string::npos);
  mixed.check_empty({1, 2});
}

TEST_CASE("a duplex session that fills its context is told so") {
  engine_fixture h(1, 300);
  duplex_options o;
  o.force_listen_count = 1000;
  h.open(1, o);
  auto answered = 0;
  for (auto u = 0; u < 40; ++u) {
    h.unit(1, static_cast<std::uint64_t>(u), second(u));
    h.run();
    if (!h.all<failed>().empty()) break;
    ++answered;
  }
  REQUIRE(h.all<failed>().size() == 1);
  CHECK(h.all<failed>()[0].kind == failure_kind::context_full);
  CHECK(h.all<step_output>().back().metrics.kv_cache_length <= 300);
  CHECK(h.all<step_output>().back().metrics.kv_cache_length > 300 - 50);
  CHECK(answered > 10);
}

TEST_CASE("a sliding window keeps a session going for ever") {
  for (auto mode : {window_mode::basic, window_mode::context}) {
    engine_fixture h(1, 400);
    duplex_options o = lively(1);
    o.window = mode;
    h.open(1, o, 3);
    for (auto u = 0; u < 60; ++u) h.unit(1, static_cast<std::uint64_t>(u), second(u));
    h.run();
    if (mode == window_mode::basic) {
      CHECK(h.all<failed>().empty());
      CHECK(h.all<step_output>().back().metrics.window_events > 3);
    }
    CHECK(h.all<step_output>().size() + h.all<failed>().size() == 60);
    h.check_empty({1});
  }
}

TEST_CASE("a prompt that does not fit is refused and takes no slot") {
  engine_fixture h(1, 128);
  std::string much(4000, 'x');
  h.engine.handle(open_duplex{1, much, {}, nullptr, nullptr, {}});
  h.run();
  REQUIRE(h.all<failed>().size() == 1);
  CHECK(h.all<failed>()[0].kind == failure_kind::context_full);
  h.engine.handle(open_chat{2, {}});
  h.engine.handle(ask(2, 1, much));
  h.engine.handle(ask(2, 2, "short"));
  h.run();
  CHECK(h.all<failed>()[1].kind == failure_kind::context_full);
  REQUIRE(h.all<chat_done>().size() == 1);
  CHECK(h.all<chat_done>()[0].turn == 2);
}

TEST_CASE("a chat answers, streams what it answers, and stops at its limits") {
  engine_fixture h(2, 128);
  h.engine.handle(open_chat{1, 4});
  CHECK(h.all<opened>().size() == 1);
  h.engine.handle(ask(1, 1, "Reply with exactly: test", 12));
  h.engine.handle(ask(1, 2, "again", 100000));
  h.run();
  auto done = h.all<chat_done>();
  REQUIRE(done.size() == 2);
  for (const auto& d : done) {
    std::string streamed;
    for (const auto& delta : h.all<chat_delta>())
      if (delta.turn == d.turn) streamed += delta.text;
    CHECK(streamed == d.text);
    CHECK(d.text.find("<|") == std::string::npos);
    CHECK(d.used.input_text > 10);
  }
  CHECK(done[0].used.output_text <= 13);
  if (done[0].used.output_text == 12) CHECK(done[0].reason == finish_reason::length);
  CHECK(done[1].metrics.kv_cache_length <= 128);
  h.check_empty({1});
}

TEST_CASE("a chat tells how likely its tokens were, and answers as without") {
  const auto answer = [](std::optional<int> scored, bool streaming, double temperature, std::string stop = {}) {
    engine_fixture h(1);
    h.engine.handle(open_chat{1, 5});
    auto turn = ask(1, 1, "Hello there", 24);
    turn.scored = scored;
    turn.streaming = streaming;
    turn.temperature = temperature;
    if (!stop.empty()) turn.stop = {stop};
    h.engine.handle(std::move(turn));
    h.run();
    std::vector<token_score> scores;
    std::string text;
    for (const auto& delta : h.all<chat_delta>()) {
      scores.insert(scores.end(), delta.scores.begin(), delta.scores.end());
      text += delta.text;
    }
    const auto done = h.all<chat_done>().at(0);
    scores.insert(scores.end(), done.scores.begin(), done.scores.end());
    return std::pair(done.text, scores);
  };
  for (const auto temperature : {0.0, 1.0}) {
    const auto [plain, none] = answer({}, true, temperature);
    CHECK(none.empty());
    for (const auto streaming : {true, false}) {
      const auto [text, scores] = answer(3, streaming, temperature);
      CHECK(text == plain);
      REQUIRE_FALSE(scores.empty());
      std::string bytes;
      for (const auto& each : scores) {
        bytes += each.chosen.bytes;
        CHECK(each.chosen.logprob <= 0);
        REQUIRE(each.likeliest.size() == 3);
        CHECK(each.likeliest[0].logprob >= each.likeliest[1].logprob);
        CHECK(each.likeliest[0].logprob >= each.chosen.logprob);
      }
      CHECK(parley::base::utf8::lossy(bytes) == text);
      CHECK(answer(0, streaming, temperature).second.at(0).likeliest.empty());
    }
    if (plain.size() < 6) continue;
    const auto [text, scores] = answer(1, true, temperature, plain.substr(4, 2));
    std::string bytes;
    for (const auto& each : scores) bytes += each.chosen.bytes;
    CHECK(plain.starts_with(text));
    CHECK(bytes.size() <= text.size()); // a token that reaches into what was stopped is left out
  }
}

TEST_CASE("a chat hears") {
  engine_fixture h(1);
  h.engine.handle(open_chat{1, 4});
  auto spoken = ask(1, 1, "what?", 5);
  spoken.messages[0].content.emplace_back(audio_item{second(2)});
  h.engine.handle(std::move(spoken));
  h.run();
  REQUIRE(h.all<chat_done>().size() == 1);
  CHECK(h.all<chat_done>()[0].used.input_audio == 10);
}

TEST_CASE("a cancelled turn says how far it came, and the next one runs") {
  engine_fixture h(1);
  h.engine.handle(open_chat{1, 4});
  auto turn = ask(1, 1, "tell me a story", 400);
  turn.do_sample = true;
  h.engine.handle(std::move(turn));
  for (auto i = 0; i < 4; ++i) h.engine.advance();
  h.engine.handle(cancel_turn{1});
  h.engine.handle(cancel_turn{1});
  h.engine.handle(ask(1, 2, "hi", 3));
  h.run();
  auto done = h.all<chat_done>();
  REQUIRE(done.size() == 2);
  CHECK(done[0].reason == finish_reason::cancelled);
  CHECK(done[1].turn == 2);
  h.check_empty({1});
}

TEST_CASE("a long prompt does not hold up running units") {
  engine_fixture h(2, 4096);
  duplex_options o;
  o.force_listen_count = 1000;
  h.open(1, o);
  h.run();
  h.engine.handle(open_chat{2, 1});
  h.engine.handle(ask(2, 1, std::string(3000, 'y'), 1));
  h.unit(1, 1, second(1));
  for (auto passes = 0; h.all<step_output>().empty(); ++passes) {
    REQUIRE(passes < 3);
    h.engine.advance();
  }
  CHECK(h.all<chat_done>().empty());
  h.run();
  CHECK(h.all<chat_done>().size() == 1);
}

TEST_CASE("8192 tokens are driven to the end", "[long]") {
  engine_fixture h(1, 8192);
  duplex_options o;
  o.force_listen_count = 100000;
  h.open(1, o, 2, second(4));
  auto units = 0;
  while (h.all<failed>().empty()) {
    REQUIRE(units < 1000);
    h.unit(1, static_cast<std::uint64_t>(units), second(units));
    ++units;
    h.run();
  }
  CHECK(h.all<failed>()[0].kind == failure_kind::context_full);
  auto length = h.all<step_output>().back().metrics.kv_cache_length;
  CHECK(length > 8192 - 60);
  CHECK(length <= 8192);
  h.check_empty({1});
}

TEST_CASE("checkpoints are told apart") {
  auto one = fingerprint("models/tiny-omni");
  CHECK(one.size() == 16);
  CHECK(one == fingerprint("models/tiny-omni"));
  CHECK(one != fingerprint("tests/data/checkpoints/tiny"));
}
