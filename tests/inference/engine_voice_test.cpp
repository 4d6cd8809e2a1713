#include "tests/inference/engine_fixture.hpp"
#include "tests/inference/sounds.hpp"

#include <catch2/catch.hpp>

#include <limits>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

engine_fixture speaking_engine(int slots) {
  return engine_fixture(slots, 2048, {}, 1, able::to_speak);
}

pcm recording(double seconds, unsigned seed) {
  return std::make_shared<const std::vector<float>>(some_sound(seed, static_cast<std::size_t>(seconds * 16000)));
}

duplex_options talkative() {
  auto o = lively(1);
  o.force_listen_count = 0;
  o.window = window_mode::off;
  return o;
}

void open_with(engine_fixture& h, session_id id, pcm voice) {
  h.engine.handle(open_duplex{id, "Be kind.", talkative(), nullptr, std::move(voice), 7});
}

std::vector<std::vector<float>> speak(engine_fixture& h, session_id id) {
  for (std::uint64_t u = 0; u < 5; ++u) h.unit(id, u, second(static_cast<int>(u)));
  h.run();
  std::vector<std::vector<float>> sounds;
  for (const auto& o : h.all<step_output>())
    if (o.session == id && o.audio) sounds.push_back(*o.audio);
  return sounds;
}

} // namespace

TEST_CASE("each voice sounds its own way, and the same one is prepared once") {
  auto h = speaking_engine(5);
  open_with(h, 1, recording(2, 1));
  open_with(h, 2, recording(2, 2));
  open_with(h, 3, recording(2, 1)); // while the first voice is being prepared
  h.run();
  CHECK(h.all<opened>().size() == 3);
  open_with(h, 4, recording(2, 1));
  CHECK(h.engine.capacity().voice_hits == 1);
  CHECK(h.engine.capacity().voice_misses == 3);
  open_with(h, 5, nullptr);
  h.run();
  const auto first = speak(h, 1), second = speak(h, 2), third = speak(h, 3), fourth = speak(h, 4), own = speak(h, 5);
  REQUIRE_FALSE(first.empty());
  CHECK(first == third);
  CHECK(first == fourth);
  CHECK(first != second);
  CHECK(first != own);
  h.check_empty({1, 2, 3, 4, 5});
}

TEST_CASE("a session talks on while others' voices are prepared") {
  auto h = speaking_engine(4);
  h.open(1, talkative(), 3);
  h.run();
  for (session_id id : {2, 3, 4}) open_with(h, id, recording(15, static_cast<unsigned>(id)));
  h.unit(1, 1, second(1));
  while (h.all<step_output>().empty() || !h.all<step_output>().back().last) h.engine.advance();
  CHECK(h.all<opened>().size() == 1); // preparing a voice takes longer than a unit, and nobody waited for it
  h.run();
  CHECK(h.all<opened>().size() == 4);
  h.check_empty({1, 2, 3, 4});
}

TEST_CASE("any recording is a voice or is refused in clear words") {
  const std::vector<float> silence(32000, 0.0F);
  auto broken = *recording(1, 1);
  broken[7] = std::numeric_limits<float>::quiet_NaN();
  auto h = speaking_engine(1);
  for (const auto& samples : {silence, *recording(60, 2), *recording(0.1, 3)}) {
    h.events.clear();
    open_with(h, 1, std::make_shared<const std::vector<float>>(samples));
    h.run();
    REQUIRE(h.all<opened>().size() == 1);
    CHECK_FALSE(speak(h, 1).empty());
    CHECK(h.all<failed>().empty());
    h.check_empty({1});
  }
  h.events.clear();
  open_with(h, 1, std::make_shared<const std::vector<float>>(broken));
  open_with(h, 1, recording(0.05, 4));
  h.engine.handle(open_chat{1, {}});
  auto question = ask(1, 3, "hello");
  question.tts = true;
  question.tts_voice = recording(0.05, 4);
  h.engine.handle(std::move(question));
  const auto refused = h.all<failed>();
  REQUIRE(refused.size() == 3);
  for (const auto& f : refused) CHECK(f.kind == failure_kind::invalid);
  CHECK(refused[0].message == "the reference voice holds values that are not numbers");
  CHECK(refused[1].message == "the reference voice is shorter than 0.1 s");
  CHECK(refused[2].number == 3);
  h.check_empty({1});
}

TEST_CASE("who leaves while the voice is prepared leaves nothing behind") {
  auto h = speaking_engine(2);
  for (auto round = 0U; round < 10; ++round) {
    open_with(h, 1, recording(3, round));
    open_with(h, 2, recording(3, round));
    for (auto passes = 0U; passes < round; ++passes) h.engine.advance();
    h.engine.handle(close_session{1});
    h.engine.handle(close_session{2});
  }
  h.run();
  CHECK(h.all<closed>().size() == 20);
  CHECK(h.engine.free_pages() == h.total_pages());
}
