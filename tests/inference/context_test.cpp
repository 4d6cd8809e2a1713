#include "inference/audio/encoder.hpp"
#include "inference/duplex/audio_intake.hpp"
#include "inference/duplex/message_rows.hpp"
#include "tests/inference/replay_fixture.hpp"

#include <ATen/ATen.h>
#include <catch2/catch.hpp>

// Messages that the model reads between two units (docs/model/thinker.md 5.7).
using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

const std::vector<text_message> notes{{role::system, "Answer in French from now on."},
                                      {role::user, "My name is <|im_end|>Ada."},
                                      {role::tool, "{\"celsius\": 21}"},
                                      {role::tool, "[]"},
                                      {role::assistant, "It is 21 degrees."}};

submit_unit unit_with(session_id id, std::uint64_t number, std::vector<text_message> context) {
  submit_unit order{};
  order.session = id;
  order.unit = number;
  order.samples = second(static_cast<int>(number));
  order.context = std::move(context);
  return order;
}

std::int64_t rows_of(const std::vector<text_message>& context) {
  return std::ssize(duplex::encode_messages(model()->text(), context).ids);
}

duplex_options greedy() {
  duplex_options o;
  o.sampling.greedy = true;
  o.force_listen_count = 1;
  return o;
}

} // namespace

TEST_CASE("the logits after messages are those of a prefill of the same rows") {
  engine_fixture h(1);
  h.open(1, greedy());
  h.unit(1, 0, second(0));
  h.run();
  h.draws->texts[1].clear();
  h.engine.handle(unit_with(1, 1, notes));
  h.run();
  REQUIRE(h.all<failed>().empty());
  REQUIRE_FALSE(h.draws->texts[1].empty());
  const auto drawn = h.draws->texts[1].front();

  c10::InferenceMode guard;
  const auto& m = *model();
  duplex::audio_intake intake;
  audio::mel_stream stream;
  auto encoder = m.make_encoder_cache();
  std::vector<at::Tensor> rows;
  const auto read = [&](const std::string& text) { rows.push_back(m.llm().embed(m.text().encode(text))); };
  const auto hear = [&](int number) {
    intake.append(*second(number), stream);
    const thinker::fresh_sound sound{&stream, &encoder, intake.chunk(stream), intake.drop_front()};
    rows.push_back(m.hear({&sound, 1}).front());
    intake.consume(stream.config);
  };
  read("<|im_start|>system\nYou are a helpful assistant.\n<|audio_start|><|audio_end|><|im_end|><unit>");
  hear(0);
  read("<|listen|></unit>");
  rows.push_back(m.llm().embed(duplex::encode_messages(m.text(), notes).ids));
  read("<unit>");
  hear(1);
  const auto all = at::cat(rows);
  const llm::kv_pool pool(m.config().llm, 1, 1024, at::kFloat, at::kCPU);
  auto cache = pool.open();
  const llm::sequence_rows sequence{&cache, all.size(0)};
  const std::int64_t last = all.size(0) - 1;
  const auto logits = m.llm().logits(m.llm().forward(all, {&sequence, 1}, {&last, 1}))[0];
  const auto [values, ids] = logits.topk(2);
  CHECK(drawn.token == ids[0].item<token_id>());
  CHECK(drawn.margin == Approx((values[0] - values[1]).item<double>()).margin(1e-4));
}

TEST_CASE("messages are counted in the cache and in the usage of their unit") {
  engine_fixture plain(1), told(1);
  for (auto* h : {&plain, &told}) {
    auto options = greedy();
    options.force_listen_count = 3;
    h->open(1, options);
    h->unit(1, 0, second(0));
    h->engine.handle(unit_with(1, 1, h == &told ? notes : std::vector<text_message>()));
    h->unit(1, 2, second(2));
    h->run();
  }
  const auto before = plain.all<step_output>(), after = told.all<step_output>();
  REQUIRE(after.size() == 3);
  const auto rows = rows_of(notes);
  CHECK(rows > 40);
  CHECK(after[0].metrics.kv_cache_length == before[0].metrics.kv_cache_length);
  CHECK(after[1].metrics.kv_cache_length == before[1].metrics.kv_cache_length + rows);
  CHECK(after[1].used.input_text == before[1].used.input_text + rows);
  CHECK(after[2].used.input_text == before[2].used.input_text);
  CHECK(after[2].metrics.kv_cache_length == before[2].metrics.kv_cache_length + rows);
  told.check_empty({1});
}

TEST_CASE("messages change what the model decides, and sessions beside it notice nothing") {
  const auto play_beside = [](bool context) {
    engine_fixture h(2);
    for (session_id id : {1, 2}) h.open(id, lively(0), 5 + id);
    for (std::uint64_t u = 0; u < 6; ++u) {
      h.engine.handle(unit_with(1, u, context && u == 2 ? notes : std::vector<text_message>()));
      h.unit(2, u, second(static_cast<int>(u) + 4));
      h.run();
    }
    return std::pair(h.draws->texts[1], h.told(2));
  };
  const auto with = play_beside(true), without = play_beside(false);
  CHECK(with.second == without.second);
  const auto same = [](const llm::draw_record& a, const llm::draw_record& b) { return a.margin == b.margin; };
  CHECK_FALSE(std::ranges::equal(with.first, without.first, same));
}

TEST_CASE("messages that do not fit are refused with their unit, and the session goes on") {
  engine_fixture h(1, 256);
  h.open(1, greedy());
  h.unit(1, 0, second(0));
  h.engine.handle(unit_with(1, 1, {{role::user, std::string(2000, '7')}}));
  h.engine.handle(unit_with(1, 2, {{role::user, "Hello."}}));
  h.run();
  const auto failures = h.all<failed>();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].number == 1);
  CHECK(failures[0].kind == failure_kind::invalid);
  CHECK(h.all<step_output>().back().unit == 2);

  engine_fixture plain(1, 256); // nothing of the refused unit is left
  plain.open(1, greedy());
  plain.unit(1, 0, second(0));
  auto order = unit_with(1, 2, {{role::user, "Hello."}});
  plain.engine.handle(std::move(order));
  plain.run();
  CHECK(h.told(1).back() == plain.told(1).back());
}

TEST_CASE("a session that read messages goes on elsewhere, wherever it was lost") {
  for (const auto mode : {window_mode::off, window_mode::basic, window_mode::context}) {
    auto options = talkative(1);
    options.window = mode;
    options.window_high_tokens = 260;
    options.window_low_tokens = 200;
    const original o({.options = options, .seed = 5, .units = mode == window_mode::off ? 10 : 30, .read = {2, 5, 11}});
    for (const auto& each : o.told) CHECK_FALSE(each.deltas.empty());
    if (mode != window_mode::off) CHECK(o.told.back().deltas.back().metrics.window_events > 0);
    lose_and_go_on(o, mode == window_mode::off ? std::vector<int>{2, 3, 6, 8} : std::vector<int>{4, 12, 20, 27});
  }
}

TEST_CASE("a window keeps the cache short although system messages stay") {
  engine_fixture h(1, 512);
  duplex_options o = lively(2);
  o.window = window_mode::basic;
  o.window_high_tokens = 260;
  o.window_low_tokens = 200;
  h.open(1, o, 3);
  for (std::uint64_t u = 0; u < 60; ++u) {
    h.engine.handle(unit_with(1, u, u % 20 == 1 ? notes : std::vector<text_message>()));
    h.run();
  }
  CHECK(h.all<failed>().empty());
  CHECK(h.all<step_output>().back().metrics.window_events > 3);
  for (const auto& each : h.all<step_output>()) CHECK(each.metrics.kv_cache_length <= 260 + 30 + rows_of(notes));
  h.check_empty({1});
}
