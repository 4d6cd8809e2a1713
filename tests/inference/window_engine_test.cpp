#include "tests/inference/engine_fixture.hpp"

#include <catch2/catch.hpp>

using namespace parley::inference;
using namespace parley::inference::testing;

TEST_CASE("a session with a sliding window talks for its whole ten minutes") {
  constexpr auto units = 600, high = 260, low = 200;
  engine_fixture h(1, 320);
  duplex_options o = lively(2);
  o.window = window_mode::basic;
  o.window_high_tokens = high;
  o.window_low_tokens = low;
  o.max_new_speak_tokens_per_chunk = 4;
  h.open(1, o, 3);
  for (std::uint64_t u = 0; u < units; ++u) {
    h.unit(1, u, second(static_cast<int>(u)));
    h.run();
    REQUIRE(h.engine.free_pages() >= h.total_pages() - (high + 60) / llm::kv_pool::page_tokens - 1);
  }
  CHECK(h.all<failed>().empty());
  const auto answers = h.all<step_output>();
  REQUIRE(answers.size() == units);
  auto before = 0;
  for (const auto& a : answers) {
    CHECK(a.metrics.window_events >= before);
    before = a.metrics.window_events;
    CHECK(a.metrics.kv_cache_length <= high + 30);
  }
  CHECK(before > 50);
  h.check_empty({1});
}

TEST_CASE("the engine slides as the reference did, whether the prompt is its own or shared") {
  verify::golden_set files("tests/data/checkpoints/tiny", "tests/data/goldens/thinker");
  const auto& recorded = files.cases("duplex_D_window_basic");
  const auto& capability = recorded.at("capability");
  const auto& reference = recorded.at("ref");
  duplex_options o;
  o.sampling.greedy = true;
  o.force_listen_count = 0;
  o.generate_audio = false;
  o.window = window_mode::basic;
  o.window_high_tokens = capability.at("basic_window_high_tokens").get<int>();
  o.window_low_tokens = capability.at("basic_window_low_tokens").get<int>();

  c10::InferenceMode guard;
  const auto tiny = std::make_shared<const thinker>(files.weights(), files.config(), at::kFloat, at::kCPU);
  std::vector<event> events;
  omni_engine engine(tiny, nullptr, llm::kv_pool(tiny->config().llm, 3, 512, at::kFloat, at::kCPU),
                     options_for(3, 512, quirks::literal(), 1, able::to_write),
                     [&](event&& e) { events.push_back(std::move(e)); });
  const auto voice = std::make_shared<const std::vector<float>>(files.clip(reference));
  for (session_id id : {1, 2, 3}) {
    engine.handle(open_duplex{id, "Streaming Omni Conversation.", o, voice, nullptr, {}});
    while (engine.advance()) {
    }
  }
  CHECK(engine.capacity().prompt_hits == 2);
  std::uint64_t number = 0;
  for (const auto& unit : recorded.at("units")) {
    events.clear();
    const auto sound = std::make_shared<const std::vector<float>>(files.clip(unit.at("input").at("audio")));
    for (session_id id : {1, 2, 3}) engine.handle(submit_unit{id, number, sound, {}, 1, false});
    while (engine.advance()) {
    }
    INFO("unit " << number++);
    REQUIRE(events.size() == 3);
    for (const auto& e : events) {
      const auto& answer = std::get<step_output>(e);
      CHECK((answer.kind == output_kind::listen) == unit.at("is_listen").get<bool>());
      CHECK(answer.text == unit.at("text").get<std::string>());
      CHECK(answer.end_of_turn == unit.at("end_of_turn").get<bool>());
      CHECK(answer.metrics.kv_cache_length == unit.at("kv_after_generate").get<int>());
    }
  }
}
