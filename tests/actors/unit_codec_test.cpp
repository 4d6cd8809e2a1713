#include "actors/bytes/unit_codec.hpp"

#include "actors/bytes/unit_bounds.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace parley;

namespace {

conversation::pcm some_samples(std::size_t count) {
  auto samples = std::make_shared<std::vector<float>>(count);
  for (std::size_t i = 0; i < count; ++i) (*samples)[i] = static_cast<float>(i) / static_cast<float>(count);
  return samples;
}

conversation::command through(const conversation::command& order) {
  conversation::command back = conversation::cut{};
  REQUIRE(actors::unpack(actors::pack(order), back));
  // Equal bytes mean equal commands: every member is packed.
  CHECK(actors::pack(back) == actors::pack(order));
  return back;
}

conversation::submit_turn some_turn() {
  conversation::submit_turn turn{};
  turn.session = 5;
  turn.turn = 6;
  turn.messages = {{conversation::role::system, {conversation::text_item{"Be brief."}}},
                   {conversation::role::user,
                    {conversation::image_item{std::make_shared<const std::string>("\xff\xd8")},
                     conversation::audio_item{some_samples(10)},
                     conversation::video_item{{std::make_shared<const std::string>("a")}, nullptr, 2}}}};
  turn.temperature = 0.25;
  turn.tts_voice = some_samples(3);
  turn.streaming = false;
  return turn;
}

} // namespace

TEST_CASE("commands survive the way between two nodes") {
  conversation::open_duplex open{};
  open.session = 1;
  open.system_prompt = "Hello \xc3\xa9";
  open.options.listen_top_k = 3;
  open.options.sampling.top_p = 0.5;
  open.options.window = conversation::window_mode::basic;
  open.voice = some_samples(100);
  open.seed = 7;
  const auto opened = std::get<conversation::open_duplex>(through(open));
  CHECK(opened.system_prompt == open.system_prompt);
  CHECK(*opened.voice == *open.voice);
  CHECK_FALSE(opened.tts_voice);
  CHECK(opened.options == open.options);
  CHECK(opened.seed == 7);

  conversation::submit_unit unit{};
  unit.session = 2;
  unit.unit = 3;
  unit.samples = some_samples(16'000);
  unit.frames = {std::make_shared<const std::string>("one"), std::make_shared<const std::string>("two")};
  unit.force_listen = true;
  unit.context = {{conversation::role::tool, "{}"}, {conversation::role::user, "Hello"}};
  const auto heard = std::get<conversation::submit_unit>(through(unit));
  CHECK(*heard.samples == *unit.samples);
  CHECK(*heard.frames.at(1) == "two");
  CHECK(heard.force_listen);
  REQUIRE(heard.context.size() == 2);
  CHECK(heard.context[0].from == conversation::role::tool);
  CHECK(heard.context[1].text == "Hello");
  CHECK_FALSE(heard.replay);

  auto chosen = std::make_shared<conversation::unit_choices>();
  chosen->sampled = {1, 2, 3};
  chosen->cut = conversation::cut_point::speaking;
  chosen->after.noise = {1, 2, 3, 4};
  unit.replay = chosen;
  const auto again = std::get<conversation::submit_unit>(through(unit));
  CHECK(again.replay->sampled == chosen->sampled);
  CHECK(again.replay->cut == chosen->cut);
  CHECK(again.replay->after.noise == chosen->after.noise);

  const auto turn = std::get<conversation::submit_turn>(through(some_turn()));
  const auto& shown = turn.messages.at(1).content;
  CHECK(*std::get<conversation::image_item>(shown.at(0)).file == "\xff\xd8");
  CHECK(std::get<conversation::video_item>(shown.at(2)).stack_frames == 2);
  CHECK(turn.temperature == 0.25);
  CHECK_FALSE(turn.streaming);

  through(conversation::open_chat{1, {}});
  through(conversation::cut{4});
  through(conversation::cancel_turn{4});
  CHECK(std::get<conversation::close_session>(through(conversation::close_session{9})).session == 9);
}

TEST_CASE("a second of sound costs its samples and little more") {
  conversation::submit_unit unit{};
  unit.samples = some_samples(16'000);
  CHECK(actors::pack(conversation::command(unit)).size() < 64'000 + 200);
  conversation::step_output spoken{};
  spoken.audio = some_samples(24'000);
  CHECK(actors::pack(conversation::event(spoken)).size() < 96'000 + 300);
}

TEST_CASE("sound that was 16-bit samples once travels in half the bytes, bit by bit") {
  const auto exact = std::make_shared<std::vector<float>>(16'000);
  for (std::size_t i = 0; i < exact->size(); ++i)
    (*exact)[i] = static_cast<float>(static_cast<int>(i * 37 % 65'536) - 32'768) / 32'768;
  conversation::submit_unit unit{};
  unit.samples = exact;
  CHECK(actors::pack(conversation::command(unit)).size() < 32'000 + 200);
  CHECK(*std::get<conversation::submit_unit>(through(unit)).samples == *exact);

  conversation::submit_turn turn{};
  turn.messages = {
      {conversation::role::user, {conversation::audio_item{exact}, conversation::video_item{{}, exact, 1}}}};
  CHECK(actors::pack(conversation::command(turn)).size() < 64'000 + 400);
  const auto heard = std::get<conversation::submit_turn>(through(turn)).messages.at(0).content;
  CHECK(*std::get<conversation::audio_item>(heard.at(0)).samples == *exact);
  CHECK(*std::get<conversation::video_item>(heard.at(1)).samples == *exact);

  // One sample is not a 16-bit value, so everything is sent as floats. Negative zero is such a sample.
  for (const float odd : {-0.0f, 1.0f, 1e-9f}) {
    auto floats = std::make_shared<std::vector<float>>(*exact);
    floats->back() = odd;
    unit.samples = floats;
    CHECK(actors::pack(conversation::command(unit)).size() >= 64'000);
    const auto back = *std::get<conversation::submit_unit>(through(unit)).samples;
    CHECK(std::memcmp(back.data(), floats->data(), back.size() * sizeof(float)) == 0);
  }
  unit.samples = std::make_shared<std::vector<float>>();
  CHECK(std::get<conversation::submit_unit>(through(unit)).samples->empty());
  unit.samples = nullptr;
  CHECK_FALSE(std::get<conversation::submit_unit>(through(unit)).samples);
}

TEST_CASE("events survive the way between two nodes") {
  conversation::step_output spoken{};
  spoken.session = 1;
  spoken.kind = conversation::output_kind::audio;
  spoken.audio = some_samples(24'000);
  spoken.end_of_turn = true;
  spoken.metrics.tts_ms = 1.5;
  conversation::event back = conversation::closed{};
  REQUIRE(actors::unpack(actors::pack(conversation::event(spoken)), back));
  const auto& heard = std::get<conversation::step_output>(back);
  CHECK(*heard.audio == *spoken.audio);
  CHECK(heard.end_of_turn);
  CHECK(heard.metrics.tts_ms == 1.5);

  REQUIRE(actors::unpack(
      actors::pack(conversation::event(conversation::failed{1, 2, conversation::failure_kind::context_full, "full"})),
      back));
  CHECK(std::get<conversation::failed>(back).kind == conversation::failure_kind::context_full);

  inference::engine_info info;
  REQUIRE(actors::unpack(
      actors::pack(inference::engine_info{"m", "f", "cpu", 4, 8192, true, false, true, {14, 66, true}}), info));
  CHECK(info.unit == conversation::unit_cost{14, 66, true});
  CHECK(info.fingerprint == "f");
  CHECK(info.speaks);

  actors::worker_capacity load;
  inference::engine_capacity full;
  full.kv_pages = 100;
  full.kv_pages_free = 90;
  full.slots = 5;
  REQUIRE(actors::unpack(actors::pack(actors::worker_capacity{full, 1.5, {7, 8}}), load));
  CHECK(load.engine.kv_pages_free == 90);
  CHECK(load.engine.slots == 5);
  CHECK(load.busy_s == 1.5);
  CHECK(load.prompts == std::vector<actors::prefix_hash>{7, 8});
}

TEST_CASE("bytes that were cut, lengthened or bent are refused") {
  const auto whole = actors::pack(conversation::command(some_turn()));
  conversation::command back = conversation::cut{};
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

namespace {

constexpr auto no_number = std::numeric_limits<double>::quiet_NaN();
constexpr auto infinite = std::numeric_limits<double>::infinity();
constexpr int least = std::numeric_limits<int>::min();
constexpr int most = std::numeric_limits<int>::max();
constexpr auto long_least = std::numeric_limits<std::int64_t>::min();
constexpr auto long_most = std::numeric_limits<std::int64_t>::max();

template<class Value>
struct spoilt {
  const char* what;
  std::function<void(Value&)> spoil;
};

/// Each makes a value that is refused of one that is not. Returns the bytes of the former.
template<class Value, class Whole>
std::vector<std::string> check_refused(const Value& good, const std::vector<spoilt<Value>>& ways) {
  std::vector<std::string> bad;
  Whole back{};
  REQUIRE(actors::unpack(actors::pack(Whole(good)), back));
  for (const auto& [what, spoil] : ways) {
    INFO(what);
    auto worse = good;
    spoil(worse);
    bad.push_back(actors::pack(Whole(worse)));
    CHECK_FALSE(actors::unpack(bad.back(), back));
  }
  return bad;
}

std::shared_ptr<const conversation::unit_choices> choices(std::vector<std::int64_t> sampled, std::int64_t owed = 0) {
  conversation::unit_choices made;
  made.sampled = std::move(sampled);
  made.owed_text = owed;
  return std::make_shared<const conversation::unit_choices>(std::move(made));
}

} // namespace

TEST_CASE("an engine's events with numbers that make no sense are refused, and are failures of what they answer") {
  using namespace conversation;
  step_output step{};
  step.session = 7;
  step.unit = 9;
  step.audio = some_samples(10);
  step.choices = choices({1});
  const auto steps = check_refused<step_output, event>(
      step, {{"kind", [](auto& of) { of.kind = static_cast<output_kind>(3); }},
             {"text", [](auto& of) { of.text = "\xc0"; }},
             {"long text", [](auto& of) { of.text.assign(actors::most_text_bytes + 1, 'x'); }},
             {"sound", [](auto& of) { of.audio = std::make_shared<const std::vector<float>>(1, std::nanf("")); }},
             {"rows", [](auto& of) { of.metrics.kv_cache_length = -1; }},
             {"rows", [](auto& of) { of.metrics.kv_cache_length = most; }},
             {"tokens", [](auto& of) { of.metrics.n_tokens = least; }},
             {"speech tokens", [](auto& of) { of.metrics.n_tts_tokens = most; }},
             {"slices", [](auto& of) { of.metrics.vision_slices = -1; }},
             {"rows of pictures", [](auto& of) { of.metrics.vision_tokens = -1; }},
             {"windows", [](auto& of) { of.metrics.window_events = least; }},
             {"prefill", [](auto& of) { of.metrics.prefill_ms = no_number; }},
             {"generate", [](auto& of) { of.metrics.generate_ms = -1; }},
             {"llm", [](auto& of) { of.metrics.llm_ms = infinite; }},
             {"tts", [](auto& of) { of.metrics.tts_ms = no_number; }},
             {"vocoder", [](auto& of) { of.metrics.token2wav_ms = 1e300; }},
             {"usage", [](auto& of) { of.used.input_text = -1; }},
             {"usage", [](auto& of) { of.used.input_audio = long_most; }},
             {"usage", [](auto& of) { of.used.input_vision = long_least; }},
             {"usage", [](auto& of) { of.used.output_text = long_most; }},
             {"usage", [](auto& of) { of.used.output_audio = -1; }},
             {"token", [](auto& of) { of.choices = choices({-1}); }},
             {"token", [](auto& of) { of.choices = choices({long_most}); }},
             {"owed", [](auto& of) { of.choices = choices({}, long_most); }},
             {"where it was cut", [](auto& of) {
                unit_choices cut;
                cut.cut = static_cast<cut_point>(-1);
                of.choices = std::make_shared<const unit_choices>(cut);
              }}});
  chat_delta delta{7, 9, "Hello", nullptr};
  const auto deltas =
      check_refused<chat_delta, event>(delta, {{"text", [](auto& of) { of.text = "\xed\xa0\x80"; }},
                                               {"token", [](auto& of) { of.sampled = {long_least}; }},
                                               {"speech token", [](auto& of) { of.spoken = {actors::most_token_ids}; }},
                                               {"score",
                                                [](auto& of) {
                                                  of.scores = {{{"a", no_number}, {}}};
                                                }},
                                               {"score",
                                                [](auto& of) {
                                                  of.scores = {{{"a", infinite}, {}}};
                                                }},
                                               {"other score",
                                                [](auto& of) {
                                                  of.scores = {{{"a", -1}, {{"b", no_number}}}};
                                                }},
                                               {"many scores",
                                                [](auto& of) {
                                                  of.scores = {{{"a", -1}, std::vector<token_chance>(65)}};
                                                }},
                                               {"call",
                                                [](auto& of) {
                                                  of.calls = {{actors::most_calls, "f", "{}"}};
                                                }},
                                               {"call",
                                                [](auto& of) {
                                                  of.calls = {{std::size_t(-1), "f", "{}"}};
                                                }},
                                               {"name",
                                                [](auto& of) {
                                                  of.calls = {{0, "\xff", "{}"}};
                                                }},
                                               {"arguments", [](auto& of) {
                                                  of.calls = {{0, "f", "\xff"}};
                                                }}});
  chat_done done{7, 9, finish_reason::turn_end, "Hello", nullptr, {}, {}};
  const auto ends =
      check_refused<chat_done, event>(done, {{"reason", [](auto& of) { of.reason = static_cast<finish_reason>(3); }},
                                             {"text", [](auto& of) { of.text = "\xff"; }},
                                             {"usage", [](auto& of) { of.used.output_text = long_least; }},
                                             {"time", [](auto& of) { of.metrics.llm_ms = no_number; }},
                                             {"calls", [](auto& of) { of.calls.resize(actors::most_calls + 1); }},
                                             {"name",
                                              [](auto& of) {
                                                of.calls = {{"", "\xff", ""}};
                                              }},
                                             {"score", [](auto& of) {
                                                of.scores = {{{"a", no_number}, {}}};
                                              }}});
  for (const auto& all : {steps, deltas, ends})
    for (const auto& each : all) {
      const auto instead = actors::failure_instead(each);
      REQUIRE(instead);
      const auto& failed = std::get<conversation::failed>(*instead);
      CHECK(failed.session == 7);
      CHECK(failed.number == 9);
    }
  const auto opens = check_refused<opened, event>(
      opened{7, 12, {}, 42}, {{"tokens", [](auto& of) { of.prompt_tokens = -1; }},
                              {"tokens", [](auto& of) { of.prompt_tokens = most; }},
                              {"usage", [](auto& of) { of.prompt_usage.input_text = long_most; }}});
  for (const auto& each : opens) CHECK(std::get<failed>(*actors::failure_instead(each)).number == 0);
  check_refused<failed, event>(failed{1, 2, failure_kind::inference, "no"},
                               {{"kind", [](auto& of) { of.kind = static_cast<failure_kind>(9); }}});
  CHECK_FALSE(actors::failure_instead(""));
  CHECK_FALSE(actors::failure_instead(std::string(1, '\x40') + std::string(40, 'x')));

  // Words for people are cut and cleaned.
  event back = closed{};
  REQUIRE(actors::unpack(actors::pack(event(failed{1, 2, failure_kind::inference, "a\xff" + std::string(9000, 'x')})),
                         back));
  CHECK(std::get<failed>(back).message.size() <= actors::most_words_bytes);
  CHECK(std::get<failed>(back).message.starts_with("a\uFFFDx"));
}

TEST_CASE("what a worker says of itself is refused if it makes no sense") {
  const inference::engine_info info{"m", "f", "cpu", 4, 8192, true, false, true, {14, 66, true}};
  check_refused<inference::engine_info, inference::engine_info>(
      info, {{"slots", [](auto& of) { of.slots = -1; }},
             {"slots", [](auto& of) { of.slots = most; }},
             {"context", [](auto& of) { of.context_tokens = least; }},
             {"context", [](auto& of) { of.context_tokens = most; }},
             {"rows", [](auto& of) { of.unit.rows = most; }},
             {"rows of a picture", [](auto& of) { of.unit.rows_per_picture = -1; }}});
  inference::engine_info back;
  auto coloured = info;
  coloured.device = "cpu\n\x1b[31m";
  REQUIRE(actors::unpack(actors::pack(coloured), back));
  CHECK(back.device == "cpu\uFFFD\uFFFD[31m");

  check_refused<actors::worker_capacity, actors::worker_capacity>(
      {{100, 90, 1, 2, 3, 4, 5}, 1.5, {7, 8}},
      {{"pages", [](auto& of) { of.engine.kv_pages = -1; }},
       {"free pages", [](auto& of) { of.engine.kv_pages_free = 101; }},
       {"free pages", [](auto& of) { of.engine.kv_pages_free = least; }},
       {"slots", [](auto& of) { of.engine.slots = most; }},
       {"time", [](auto& of) { of.busy_s = no_number; }},
       {"time", [](auto& of) { of.busy_s = -1; }},
       {"prompts", [](auto& of) { of.prompts.resize(inference::kept_prompts + 1); }}});
}

TEST_CASE("a gateway's orders with numbers that make no sense are refused") {
  using namespace conversation;
  const auto no_files = std::vector<image_file>{nullptr};
  check_refused<open_duplex, command>(
      open_duplex{}, {{"temperature", [](auto& of) { of.options.sampling.temperature = no_number; }},
                      {"top_p", [](auto& of) { of.options.sampling.top_p = -1; }},
                      {"top_k", [](auto& of) { of.options.sampling.top_k = least; }},
                      {"penalty", [](auto& of) { of.options.sampling.repetition_penalty = infinite; }},
                      {"window", [](auto& of) { of.options.sampling.repetition_window = -1; }},
                      {"most", [](auto& of) { of.options.max_new_speak_tokens_per_chunk = most; }},
                      {"forced", [](auto& of) { of.options.force_listen_count = -1; }},
                      {"listen_top_k", [](auto& of) { of.options.listen_top_k = -1; }},
                      {"prompt", [](auto& of) { of.system_prompt = "\xc3"; }},
                      {"window mode", [](auto& of) { of.options.window = static_cast<window_mode>(7); }},
                      {"high", [](auto& of) { of.options.window_high_tokens = -1; }},
                      {"low", [](auto& of) { of.options.window_low_tokens = least; }}});
  submit_unit unit{};
  unit.samples = some_samples(16'000);
  check_refused<submit_unit, command>(
      unit, {{"samples", [](auto& of) { of.samples = some_samples(16'001); }},
             {"no frame", [&](auto& of) { of.frames = no_files; }},
             {"frames", [](auto& of) { of.frames.assign(65, std::make_shared<const std::string>("x")); }},
             {"slices", [](auto& of) { of.max_slice_nums = -1; }},
             {"token", [](auto& of) { of.replay = choices({actors::most_token_ids}); }},
             {"much to read",
              [](auto& of) {
                of.context = {{role::user, std::string(16'385, 'x')}};
              }},
             {"much to read in parts",
              [](auto& of) {
                of.context.assign(17, {role::user, std::string(1000, 'x')});
              }},
             {"bytes to read",
              [](auto& of) {
                of.context = {{role::user, "\xff"}};
              }},
             {"role", [](auto& of) {
                of.context = {{static_cast<role>(4), "x"}};
              }}});
  check_refused<submit_turn, command>(
      some_turn(), {{"tokens", [](auto& of) { of.max_new_tokens = -1; }},
                    {"temperature", [](auto& of) { of.temperature = no_number; }},
                    {"top_k", [](auto& of) { of.top_k = -1; }},
                    {"top_p", [](auto& of) { of.top_p = infinite; }},
                    {"slices", [](auto& of) { of.max_slice_nums = least; }},
                    {"scores", [](auto& of) { of.scored = most; }},
                    {"role", [](auto& of) { of.messages.at(0).from = static_cast<role>(200); }},
                    {"text", [](auto& of) { of.messages.at(0).content = {text_item{"\xed\xa0\x80"}}; }},
                    {"no picture", [](auto& of) { of.messages.at(0).content = {image_item{nullptr}}; }},
                    {"no frame",
                     [&](auto& of) {
                       of.messages.at(0).content = {video_item{no_files, nullptr, 1}};
                     }},
                    {"said", [](auto& of) {
                       turn_choices said;
                       said.text_bytes = std::size_t(-1);
                       of.replay = std::make_shared<const turn_choices>(said);
                     }}});
}

TEST_CASE("what the fuzzer of another node's words begins with can be read") {
  std::size_t files = 0;
  for (const auto& each : std::filesystem::directory_iterator("tests/fuzz/corpus/units")) {
    INFO(each.path().string());
    std::ifstream in(each.path(), std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(in), {}};
    const std::string_view bytes = std::string_view(all).substr(1);
    conversation::command order;
    conversation::event event;
    inference::engine_info info;
    actors::worker_capacity load;
    switch (all.front()) {
    case 'o': CHECK(actors::unpack(bytes, order)); break;
    case 'i': CHECK(actors::unpack(bytes, info)); break;
    case 'c': CHECK(actors::unpack(bytes, load)); break;
    default: CHECK(actors::unpack(bytes, event));
    }
    ++files;
  }
  CHECK(files >= 16);
}
