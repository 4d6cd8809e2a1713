#include "protocol/session/engine_words.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <variant>
#include <vector>

using namespace parley;
using protocol::wire_metrics;

TEST_CASE("an init becomes an open command, and every option of it arrives") {
  protocol::init_event init;
  init.system_prompt = "Be brief.";
  init.voice = std::make_shared<const std::vector<float>>(4000);
  init.tts_voice = std::make_shared<const std::vector<float>>(5000);
  init.config.sampling.temperature = 0.25;
  init.config.force_listen_count = 7;
  init.config.window = conversation::window_mode::basic;
  init.seed = 42;
  const auto open = std::get<conversation::open_duplex>(protocol::opening(protocol::mode::audio, init));
  CHECK(open.system_prompt == "Be brief.");
  CHECK(open.voice == init.voice); // passed on, not copied
  CHECK(open.tts_voice == init.tts_voice);
  CHECK(open.seed == 42u);
  CHECK(open.options == init.config);
  CHECK(std::get<conversation::open_chat>(protocol::opening(protocol::mode::chat, init)).seed == 42u);
}

TEST_CASE("events tell only what a step had") {
  conversation::step_metrics spent;
  spent.kv_cache_length = 100;
  spent.prefill_ms = 1.5;
  spent.llm_ms = 2.5;
  auto told = wire_metrics(spent);
  CHECK(told.backend == "libtorch");
  CHECK(told.kv_cache_length == 100);
  CHECK(told.prefill_ms == 1.5);
  CHECK(told.cost_llm_ms == 2.5);
  CHECK_FALSE(told.n_tts_tokens);
  CHECK_FALSE(told.vision_slices);
  CHECK_FALSE(told.window_events);
  spent.n_tts_tokens = 25;
  spent.token2wav_ms = 9;
  spent.vision_slices = 2;
  spent.vision_tokens = 128;
  spent.window_events = 1;
  told = wire_metrics(spent);
  CHECK(told.n_tts_tokens == 25);
  CHECK(told.cost_token2wav_ms == 9);
  CHECK(told.vision_slices == 2);
  CHECK(told.vision_tokens == 128);
  CHECK(told.window_events == 1);
}
