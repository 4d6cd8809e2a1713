#include "actors/session/convert.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using actors::from_engine;
using actors::to_engine;

namespace {
inference::pcm sound(std::size_t samples) {
  return std::make_shared<const std::vector<float>>(samples);
}
} // namespace

TEST_CASE("an init becomes an open command, and every option of it arrives") {
  auto init = std::make_shared<protocol::init_event>();
  init->system_prompt = "Be brief.";
  init->voice = sound(4000);
  init->tts_voice = sound(5000);
  init->config.sampling.temperature = 0.25;
  init->config.force_listen_count = 7;
  init->config.window = conversation::window_mode::basic;
  init->seed = 42;
  const auto voice = init->voice;
  const auto command = to_engine(protocol::open_engine{protocol::mode::audio, init}, 9);
  const auto& open = std::get<inference::open_duplex>(command);
  CHECK(open.session == 9);
  CHECK(open.system_prompt == "Be brief.");
  CHECK(open.voice == voice);
  CHECK(open.tts_voice == init->tts_voice);
  CHECK(open.seed == 42u);
  CHECK(open.options == init->config);

  const auto chat = to_engine(protocol::open_engine{protocol::mode::chat, init}, 10);
  CHECK(std::get<inference::open_chat>(chat).session == 10);
  CHECK(std::get<inference::open_chat>(chat).seed == 42u);
}

TEST_CASE("samples and pictures are passed on, not copied") {
  const auto samples = sound(16'000);
  const auto frame = std::make_shared<const std::string>("jpeg");
  const auto command =
      to_engine(protocol::submit_unit{5, samples, {frame}, 4, true, {{protocol::role::user, "Hello"}}}, 9);
  const auto& unit = std::get<inference::submit_unit>(command);
  CHECK(unit.session == 9);
  CHECK(unit.unit == 5);
  CHECK(unit.samples == samples);
  CHECK(unit.frames == std::vector{frame});
  CHECK(unit.max_slice_nums == 4);
  CHECK(unit.force_listen);
  REQUIRE(unit.context.size() == 1);
  CHECK(unit.context[0].text == "Hello");

  inference::step_output output{};
  output.kind = inference::output_kind::audio;
  output.audio = samples;
  CHECK(from_engine(std::move(output)).audio == samples);
}

TEST_CASE("a chat request becomes a turn") {
  auto request = std::make_shared<protocol::chat_append_event>();
  const auto samples = sound(100);
  const auto picture = std::make_shared<const std::string>("jpeg");
  request->messages = {{protocol::role::system, {protocol::text_item{"Be kind."}}},
                       {protocol::role::assistant, {protocol::audio_item{samples}, protocol::image_item{picture}}},
                       {protocol::role::user, {protocol::video_item{{picture}, samples, 2}}}};
  request->max_new_tokens = 3;
  request->length_penalty = 0.5;
  request->temperature = 0.1;
  request->top_k = 4;
  request->top_p = 0.9;
  request->do_sample = false;
  request->seed = 8;
  request->max_slice_nums = 2;
  request->omni_mode = request->use_tts_template = request->enable_thinking = request->tts = true;
  request->tts_voice = samples;
  const auto command = to_engine(protocol::submit_turn{6, request}, 9);
  const auto& turn = std::get<inference::submit_turn>(command);
  CHECK(turn.session == 9);
  CHECK(turn.turn == 6);
  REQUIRE(turn.messages.size() == 3);
  CHECK(turn.messages[0].from == inference::role::system);
  CHECK(std::get<inference::text_item>(turn.messages[0].content.at(0)).text == "Be kind.");
  CHECK(turn.messages[1].from == inference::role::assistant);
  CHECK(std::get<inference::audio_item>(turn.messages[1].content.at(0)).samples == samples);
  CHECK(std::get<inference::image_item>(turn.messages[1].content.at(1)).file == picture);
  CHECK(turn.messages[2].from == inference::role::user);
  CHECK(std::get<inference::video_item>(turn.messages[2].content.at(0)).stack_frames == 2);
  CHECK(turn.max_new_tokens == 3);
  CHECK(turn.length_penalty == 0.5);
  CHECK(turn.temperature == 0.1);
  CHECK(turn.top_k == 4);
  CHECK(turn.top_p == 0.9);
  CHECK(turn.do_sample == false);
  CHECK(turn.seed == 8u);
  CHECK(turn.max_slice_nums == 2);
  CHECK((turn.omni_mode && turn.use_tts_template && turn.enable_thinking && turn.tts));
  CHECK(turn.tts_voice == samples);
}

TEST_CASE("only the last delta of a step tells what it cost, and only what it had") {
  inference::step_output output{};
  output.unit = 3;
  output.kind = inference::output_kind::text;
  output.text = "Hi";
  output.end_of_turn = true;
  output.used = {1, 2, 3, 4, 5};
  output.metrics.kv_cache_length = 100;
  output.metrics.prefill_ms = 1.5;
  output.metrics.llm_ms = 2.5;
  output.last = false;
  auto report = from_engine(inference::step_output(output));
  CHECK(report.unit == 3);
  CHECK(report.kind == protocol::output_kind::text);
  CHECK(report.text == "Hi");
  CHECK(report.end_of_turn);
  CHECK(report.used == protocol::usage{1, 2, 3, 4, 5});
  CHECK(report.measured.kv_cache_length == 100);
  CHECK(report.measured.backend.empty());
  CHECK_FALSE(report.measured.prefill_ms);
  output.last = true;
  report = from_engine(inference::step_output(output));
  CHECK(report.measured.backend == "libtorch");
  CHECK(report.measured.prefill_ms == 1.5);
  CHECK(report.measured.cost_llm_ms == 2.5);
  CHECK_FALSE(report.measured.n_tts_tokens);
  CHECK_FALSE(report.measured.vision_slices);
  CHECK_FALSE(report.measured.window_events);
  output.metrics.n_tts_tokens = 25;
  output.metrics.token2wav_ms = 9;
  output.metrics.vision_slices = 2;
  output.metrics.vision_tokens = 128;
  output.metrics.window_events = 1;
  report = from_engine(std::move(output));
  CHECK(report.measured.n_tts_tokens == 25);
  CHECK(report.measured.cost_token2wav_ms == 9);
  CHECK(report.measured.vision_slices == 2);
  CHECK(report.measured.vision_tokens == 128);
  CHECK(report.measured.window_events == 1);
}

TEST_CASE("ends and failures keep their kind") {
  using protocol::failure_kind;
  CHECK(from_engine(inference::chat_done{1, 2, inference::finish::turn_end, "x", nullptr, {}, {}}).reason ==
        conversation::finish_reason::turn_end);
  CHECK(from_engine(inference::chat_done{1, 2, inference::finish::length, "x", nullptr, {}, {}}).reason ==
        conversation::finish_reason::length);
  CHECK(from_engine(inference::chat_done{1, 2, inference::finish::cancelled, "x", nullptr, {}, {}}).reason ==
        conversation::finish_reason::cancelled);
  CHECK(from_engine(inference::failed{1, 2, inference::failure::invalid, "m"}).kind == failure_kind::invalid);
  CHECK(from_engine(inference::failed{1, 2, inference::failure::context_full, "m"}).kind == failure_kind::context_full);
  const auto failure = from_engine(inference::failed{1, 2, inference::failure::inference, "m"});
  CHECK(failure.kind == failure_kind::inference);
  CHECK(failure.number == 2);
  CHECK(failure.message == "m");
}
