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
    for (session_id id : {1, 2, 3}) engine.handle(submit_unit{{sound, {}, 1, false}, id, number});
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

namespace {

/// Units with typed text of these lengths before them, at whatever fills the context.
std::vector<event> fill_context(const duplex_options& o, int context, const std::vector<std::size_t>& texts) {
  engine_fixture h(1, context);
  h.open(1, o, 3);
  h.run();
  for (std::uint64_t u = 0; u < texts.size(); ++u) {
    submit_unit order{{second(static_cast<int>(u)), {}, 1, false}, 1, u};
    if (texts[u] > 0) order.context.push_back({u % 3 == 0 ? role::system : role::user, std::string(texts[u], '7')});
    h.engine.handle(std::move(order));
    h.run();
  }
  h.check_empty({1});
  return h.events;
}

} // namespace

TEST_CASE("a session with a window never finds its context full, whatever its marks and whatever is typed") {
  constexpr auto context = 320;
  for (const auto mode : {window_mode::basic, window_mode::context})
    for (const auto& [high, low] : {std::pair{320, 300}, {310, 200}, {5000, 4000}}) {
      if (mode == window_mode::context && high != 320) continue; // it has no marks
      CAPTURE(static_cast<int>(mode), high, low);
      duplex_options o = lively(2);
      o.window = mode;
      o.window_high_tokens = high;
      o.window_low_tokens = low;
      std::vector<std::size_t> texts(120, 0);
      for (auto u = std::size_t{0}; u < texts.size(); u += 2) texts[u] = u % 5 * 20;
      auto answered = 0, slides = 0;
      for (const auto& e : fill_context(o, context, texts)) {
        if (const auto* f = std::get_if<failed>(&e)) FAIL(f->message);
        const auto* a = std::get_if<step_output>(&e);
        if (!a) continue;
        answered += a->last;
        slides = a->metrics.window_events;
        CHECK(a->metrics.kv_cache_length <= context);
      }
      CHECK(answered == 120);
      CHECK(slides > 5);
    }
}

TEST_CASE("what does not fit into a window even alone is refused, and costs nothing of what is there") {
  duplex_options o = lively(2);
  o.window = window_mode::basic;
  o.window_high_tokens = 320;
  o.window_low_tokens = 300;
  const auto events = fill_context(o, 320, {0, 0, 0, 2000, 0, 0});
  std::vector<std::uint64_t> refused;
  auto answered = 0;
  for (const auto& e : events) {
    if (const auto* f = std::get_if<failed>(&e)) {
      CHECK(f->kind == failure_kind::invalid);
      refused.push_back(f->number);
    }
    if (const auto* a = std::get_if<step_output>(&e)) {
      answered += a->last;
      CHECK(a->metrics.window_events == 0);
    }
  }
  CHECK(refused == std::vector<std::uint64_t>{3});
  CHECK(answered == 5);
}

TEST_CASE("a prompt that leaves a sliding window no room for a unit is refused at once") {
  for (const auto mode : {window_mode::off, window_mode::basic}) {
    engine_fixture h(1, 64);
    duplex_options o;
    o.window = mode;
    std::string prompt;
    while (model()->text().encode("<|im_start|>system\n" + prompt + "\n<|audio_start|><|audio_end|><|im_end|>").size() <
           45)
      prompt += " word";
    h.engine.handle(open_duplex{1, prompt, o, nullptr, nullptr, 1});
    h.run();
    REQUIRE(h.all<opened>().size() == (mode == window_mode::off ? 1 : 0));
    if (mode == window_mode::basic) CHECK(h.all<failed>().at(0).kind == failure_kind::context_full);
  }
}

TEST_CASE("a slide moves each row that is left once, in several passes, whatever was dropped") {
  constexpr auto context = 8192;
  std::vector<event> events;
  const auto& m = model();
  llm::kv_pool pool(m->config().llm, 1, context, at::kFloat, at::kCPU);
  omni_engine engine(m, nullptr, pool, options_for(1, context, quirks{}, 1, able::to_write),
                     [&](event&& e) { events.push_back(std::move(e)); });
  duplex_options o;
  o.window = window_mode::basic;
  o.window_high_tokens = 7900;
  o.window_low_tokens = 4000;
  engine.handle(open_duplex{1, "You are a helpful assistant.", o, nullptr, nullptr, 1});
  auto passes = 0;
  auto before = 0;
  for (std::uint64_t u = 0; events.empty() || !std::holds_alternative<failed>(events.back()); ++u) {
    submit_unit order{{second(static_cast<int>(u)), {}, 1, true}, 1, u};
    for (auto i = 0; i < 32; ++i) order.context.push_back({i % 2 ? role::system : role::user, "x"});
    engine.handle(std::move(order));
    passes = 0;
    while (engine.advance()) ++passes;
    REQUIRE(u < 100);
    if (pool.moved_rows() > 0) break;
    before = passes;
  }
  const auto& last = std::get<step_output>(events.back());
  CHECK(last.metrics.kv_cache_length > 7600);
  const auto layers = static_cast<std::uint64_t>(m->config().llm.layers);
  const auto moved = pool.moved_rows() / layers; // the session's prompt stays where it is
  CHECK(moved * layers == pool.moved_rows());
  CHECK(moved <= 4000);
  CHECK(moved > 3500);
  CHECK(passes > before); // it returned to the scheduler
}
