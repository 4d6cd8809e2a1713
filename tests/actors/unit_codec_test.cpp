#include "actors/cluster/unit_codec.hpp"

#include <catch2/catch.hpp>

#include <cstring>

using namespace parley;

namespace {

inference::pcm some_samples(std::size_t count) {
  auto samples = std::make_shared<std::vector<float>>(count);
  for (std::size_t i = 0; i < count; ++i) (*samples)[i] = static_cast<float>(i) / static_cast<float>(count);
  return samples;
}

inference::command through(const inference::command& order) {
  inference::command back = inference::cut{};
  REQUIRE(actors::unpack(actors::pack(order), back));
  // Equal bytes mean equal commands: every member is packed.
  CHECK(actors::pack(back) == actors::pack(order));
  return back;
}

inference::submit_turn some_turn() {
  inference::submit_turn turn{};
  turn.session = 5;
  turn.turn = 6;
  turn.messages = {
      {inference::role::system, {inference::text_item{"Be brief."}}},
      {inference::role::user,
       {inference::image_item{std::make_shared<const std::string>("\xff\xd8")}, inference::audio_item{some_samples(10)},
        inference::video_item{{std::make_shared<const std::string>("a")}, nullptr, 2}}}};
  turn.temperature = 0.25;
  turn.tts_voice = some_samples(3);
  turn.streaming = false;
  return turn;
}

} // namespace

TEST_CASE("commands survive the way between two nodes") {
  inference::open_duplex open{};
  open.session = 1;
  open.system_prompt = "Hello \xc3\xa9";
  open.options.listen_top_k = 3;
  open.options.sampling.top_p = 0.5;
  open.options.window = inference::window_mode::basic;
  open.voice = some_samples(100);
  open.seed = 7;
  const auto opened = std::get<inference::open_duplex>(through(open));
  CHECK(opened.system_prompt == open.system_prompt);
  CHECK(*opened.voice == *open.voice);
  CHECK_FALSE(opened.tts_voice);
  CHECK(opened.options == open.options);
  CHECK(opened.seed == 7);

  inference::submit_unit unit{};
  unit.session = 2;
  unit.unit = 3;
  unit.samples = some_samples(16'000);
  unit.frames = {std::make_shared<const std::string>("one"), std::make_shared<const std::string>("two")};
  unit.force_listen = true;
  unit.context = {{inference::role::tool, "{}"}, {inference::role::user, "Hello"}};
  const auto heard = std::get<inference::submit_unit>(through(unit));
  CHECK(*heard.samples == *unit.samples);
  CHECK(*heard.frames.at(1) == "two");
  CHECK(heard.force_listen);
  REQUIRE(heard.context.size() == 2);
  CHECK(heard.context[0].from == inference::role::tool);
  CHECK(heard.context[1].text == "Hello");
  CHECK_FALSE(heard.replay);

  auto chosen = std::make_shared<inference::unit_choices>();
  chosen->sampled = {1, 2, 3};
  chosen->cut = inference::cut_point::speaking;
  chosen->after.noise = {1, 2, 3, 4};
  unit.replay = chosen;
  const auto again = std::get<inference::submit_unit>(through(unit));
  CHECK(again.replay->sampled == chosen->sampled);
  CHECK(again.replay->cut == chosen->cut);
  CHECK(again.replay->after.noise == chosen->after.noise);

  const auto turn = std::get<inference::submit_turn>(through(some_turn()));
  const auto& shown = turn.messages.at(1).content;
  CHECK(*std::get<inference::image_item>(shown.at(0)).file == "\xff\xd8");
  CHECK(std::get<inference::video_item>(shown.at(2)).stack_frames == 2);
  CHECK(turn.temperature == 0.25);
  CHECK_FALSE(turn.streaming);

  through(inference::open_chat{1, {}});
  through(inference::cut{4});
  through(inference::cancel_turn{4});
  CHECK(std::get<inference::close_session>(through(inference::close_session{9})).session == 9);
}

TEST_CASE("a second of sound costs its samples and little more") {
  inference::submit_unit unit{};
  unit.samples = some_samples(16'000);
  CHECK(actors::pack(inference::command(unit)).size() < 64'000 + 200);
  inference::step_output spoken{};
  spoken.audio = some_samples(24'000);
  CHECK(actors::pack(inference::event(spoken)).size() < 96'000 + 300);
}

TEST_CASE("sound that was 16-bit samples once travels in half the bytes, bit by bit") {
  const auto exact = std::make_shared<std::vector<float>>(16'000);
  for (std::size_t i = 0; i < exact->size(); ++i)
    (*exact)[i] = static_cast<float>(static_cast<int>(i * 37 % 65'536) - 32'768) / 32'768;
  inference::submit_unit unit{};
  unit.samples = exact;
  CHECK(actors::pack(inference::command(unit)).size() < 32'000 + 200);
  CHECK(*std::get<inference::submit_unit>(through(unit)).samples == *exact);

  inference::submit_turn turn{};
  turn.messages = {{inference::role::user, {inference::audio_item{exact}, inference::video_item{{}, exact, 1}}}};
  CHECK(actors::pack(inference::command(turn)).size() < 64'000 + 400);
  const auto heard = std::get<inference::submit_turn>(through(turn)).messages.at(0).content;
  CHECK(*std::get<inference::audio_item>(heard.at(0)).samples == *exact);
  CHECK(*std::get<inference::video_item>(heard.at(1)).samples == *exact);

  // One sample is not a 16-bit value, so everything is sent as floats. Negative zero is such a sample.
  for (const float odd : {-0.0f, 1.0f, 1e-9f}) {
    auto floats = std::make_shared<std::vector<float>>(*exact);
    floats->back() = odd;
    unit.samples = floats;
    CHECK(actors::pack(inference::command(unit)).size() >= 64'000);
    const auto back = *std::get<inference::submit_unit>(through(unit)).samples;
    CHECK(std::memcmp(back.data(), floats->data(), back.size() * sizeof(float)) == 0);
  }
  unit.samples = std::make_shared<std::vector<float>>();
  CHECK(std::get<inference::submit_unit>(through(unit)).samples->empty());
  unit.samples = nullptr;
  CHECK_FALSE(std::get<inference::submit_unit>(through(unit)).samples);
}

TEST_CASE("events survive the way between two nodes") {
  inference::step_output spoken{};
  spoken.session = 1;
  spoken.kind = inference::output_kind::audio;
  spoken.audio = some_samples(24'000);
  spoken.end_of_turn = true;
  spoken.metrics.tts_ms = 1.5;
  inference::event back = inference::closed{};
  REQUIRE(actors::unpack(actors::pack(inference::event(spoken)), back));
  const auto& heard = std::get<inference::step_output>(back);
  CHECK(*heard.audio == *spoken.audio);
  CHECK(heard.end_of_turn);
  CHECK(heard.metrics.tts_ms == 1.5);

  REQUIRE(actors::unpack(
      actors::pack(inference::event(inference::failed{1, 2, inference::failure::context_full, "full"})), back));
  CHECK(std::get<inference::failed>(back).kind == inference::failure::context_full);

  inference::engine_info info;
  REQUIRE(actors::unpack(
      actors::pack(inference::engine_info{"m", "f", "cpu", 4, 8192, true, false, true, {14, 66, true}}), info));
  CHECK(info.unit == conversation::unit_cost{14, 66, true});
  CHECK(info.fingerprint == "f");
  CHECK(info.speaks);

  actors::worker_capacity load;
  REQUIRE(actors::unpack(actors::pack(actors::worker_capacity{{100, 90, 1, 2, 3, 4, 5}, 1.5, {7, 8}}), load));
  CHECK(load.engine.kv_pages_free == 90);
  CHECK(load.engine.slots == 5);
  CHECK(load.busy_s == 1.5);
  CHECK(load.prompts == std::vector<actors::prefix_hash>{7, 8});
}

TEST_CASE("bytes that were cut, lengthened or bent are refused") {
  const auto whole = actors::pack(inference::command(some_turn()));
  inference::command back = inference::cut{};
  for (std::size_t size = 0; size < whole.size(); ++size) CHECK_FALSE(actors::unpack(whole.substr(0, size), back));
  CHECK_FALSE(actors::unpack(whole + "x", back));
  // Whatever a wrong byte does, nothing is read beyond the end (the sanitizers watch).
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char wrong : {'\x00', '\x7f', '\xff'}) {
      auto bent = whole;
      bent[at] = wrong;
      (void)actors::unpack(bent, back);
    }
}
