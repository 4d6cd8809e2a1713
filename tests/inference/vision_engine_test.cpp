#include "inference/engine/omni/omni_engine.hpp"
#include "inference/vision/sight.hpp"
#include "tests/inference/picture_files.hpp"
#include "tests/inference/sounds.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <catch2/catch.hpp>

#include <map>

using namespace parley::inference;
using namespace parley::inference::testing;

namespace {

const std::shared_ptr<const thinker>& model() {
  static const auto m = [] {
    c10::InferenceMode guard;
    return std::make_shared<const thinker>(checkpoint::open("models/tiny-omni"), model_config::open("models/tiny-omni"),
                                           at::kFloat, at::kCPU);
  }();
  return m;
}

image_file frame(int width, int height, int quality = 90) {
  return std::make_shared<const std::string>(jpeg_file(gradient(width, height), {.quality = quality}));
}

image_file broken() {
  auto file = jpeg_file(gradient(64, 64));
  return std::make_shared<const std::string>(file.substr(0, file.size() / 2));
}

pcm hum(int number) {
  return std::make_shared<const std::vector<float>>(some_sound(static_cast<unsigned>(number), 16000));
}

struct engine_fixture {
  explicit engine_fixture(int slots, int context = 4096)
      : engine(model(), nullptr, llm::kv_pool(model()->config().llm, slots, context, at::kFloat, at::kCPU),
               options_for(slots, context), [this](event&& e) { events.push_back(std::move(e)); }) {}

  static omni_engine::options options_for(int slots, int context) {
    omni_engine::options o;
    o.info.slots = slots;
    o.info.context_tokens = context;
    o.seed = 3;
    return o;
  }

  void open(session_id id) {
    duplex_options o;
    o.force_listen_count = 1;
    engine.handle(open_duplex{id, "Look.", o, nullptr, nullptr, 5});
  }

  void unit(session_id id, std::uint64_t number, std::vector<image_file> frames, int max_slice_nums = 1) {
    engine.handle(submit_unit{{hum(static_cast<int>(number)), std::move(frames), max_slice_nums, false}, id, number});
  }

  void ask(std::uint64_t turn, std::vector<content_item> content, std::optional<int> max_slice_nums = {}) {
    submit_turn t;
    t.session = 1;
    t.turn = turn;
    t.messages = {{role::user, std::move(content)}};
    t.max_new_tokens = 6;
    t.do_sample = false;
    t.max_slice_nums = max_slice_nums;
    engine.handle(std::move(t));
  }

  void run() {
    for (auto passes = 0; engine.advance(); ++passes) REQUIRE(passes < 100000);
  }

  template<class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const auto& e : events)
      if (const auto* x = std::get_if<T>(&e)) found.push_back(*x);
    return found;
  }

  std::vector<std::string> told(session_id id) const {
    std::vector<std::string> lines;
    for (const auto& o : all<step_output>())
      if (o.session == id)
        lines.push_back(std::to_string(o.unit) + ' ' + o.text + ' ' + std::to_string(o.metrics.kv_cache_length));
    return lines;
  }

  std::vector<event> events;
  omni_engine engine;
};

} // namespace

TEST_CASE("the frames of a unit are counted and grow its context") {
  engine_fixture h(1);
  h.open(1);
  h.unit(1, 0, {});
  h.unit(1, 1, {frame(320, 240)});
  h.unit(1, 2, {frame(640, 480), frame(100, 60)}, 4); // two cells and the overview, plus one small picture
  h.run();
  const auto steps = h.all<step_output>();
  REQUIRE(steps.size() == 3);
  const auto rows = model()->config().vision.query_num;
  auto total = std::int64_t{h.all<opened>().at(0).prompt_tokens};
  const int pieces[] = {0, 1, 4};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(steps[i].metrics.vision_slices == pieces[i]);
    CHECK(steps[i].metrics.vision_tokens == pieces[i] * rows);
    CHECK(steps[i].used.input_vision == pieces[i] * rows);
    const auto& used = steps[i].used;
    total += used.input_text + used.input_audio + used.input_vision + used.output_text;
    CHECK(steps[i].metrics.kv_cache_length == total - 2); // terminator and </unit> are fed later
  }
}

TEST_CASE("sessions that see together decide as each alone") {
  const auto drive = [](engine_fixture& h, std::vector<session_id> who) {
    for (auto id : who) h.open(id);
    for (std::uint64_t u = 0; u < 4; ++u) {
      for (auto id : who)
        h.unit(id, u, u % 2 == 0 ? std::vector{frame(200 + 90 * static_cast<int>(id), 240)} : std::vector<image_file>{},
               1 + static_cast<int>(id) * 3);
      h.run();
    }
  };
  std::map<session_id, std::vector<std::string>> alone;
  for (session_id id = 0; id < 3; ++id) {
    engine_fixture h(1);
    drive(h, {id});
    alone[id] = h.told(id);
    CHECK(alone[id].size() == 4);
  }
  engine_fixture h(3);
  drive(h, {2, 0, 1});
  for (session_id id = 0; id < 3; ++id) CHECK(h.told(id) == alone[id]);
}

TEST_CASE("many pictures of one second enter the cache in parts, so that other sessions get their turns") {
  engine_fixture h(1, 8192);
  h.open(1);
  h.run();
  const auto large = frame(1344, 1344);
  h.unit(1, 0, {large, large, large, large}, 9);
  const auto page = std::int64_t{llm::kv_pool::page_tokens};
  auto rows = std::int64_t{0}, most = std::int64_t{0};
  for (auto pages = h.engine.free_pages(); h.engine.advance();) {
    const auto taken = pages - h.engine.free_pages();
    pages = h.engine.free_pages();
    rows += taken * page;
    most = std::max<std::int64_t>(most, taken * page);
  }
  CHECK(h.told(1).size() == 1);
  CHECK(rows > 512);
  CHECK(most <= 256 + page);
}

TEST_CASE("a frame that is no picture spoils its unit and nothing else") {
  engine_fixture clean(1), h(1);
  for (auto* which : {&clean, &h}) {
    which->open(1);
    which->unit(1, 0, {frame(64, 64)});
    if (which == &h) which->unit(1, 1, {frame(64, 64), broken()});
    which->unit(1, 2, {});
    which->run();
  }
  const auto failures = h.all<failed>();
  REQUIRE(failures.size() == 1);
  CHECK(failures[0].number == 1);
  CHECK(failures[0].kind == failure_kind::invalid);
  CHECK_THAT(failures[0].message, Catch::StartsWith("video_frames[1]: not a readable JPEG file"));
  CHECK(h.told(1) == clean.told(1));
  h.engine.handle(close_session{1});
  CHECK(h.engine.free_pages() == h.engine.capacity().kv_pages);
}

TEST_CASE("a session that closes while its pictures are sliced leaves nothing") {
  engine_fixture h(2);
  h.open(1);
  h.open(2);
  h.run();
  const auto large = frame(1280, 720);
  for (std::uint64_t u = 0; u < 20; ++u) h.unit(1, u, {large, large}, 9);
  h.engine.advance();
  h.engine.handle(close_session{1});
  h.unit(2, 0, {frame(64, 64)});
  h.run();
  CHECK(h.told(1).empty());
  CHECK(h.told(2).size() == 1);
}

TEST_CASE("a chat sees pictures of all kinds between its other items") {
  engine_fixture h(1);
  h.engine.handle(open_chat{1, 4});
  const auto still = gradient(60, 50);
  h.ask(1,
        {image_item{frame(640, 480)}, text_item{"and"}, audio_item{hum(1)},
         image_item{std::make_shared<const std::string>(png_file(still))},
         image_item{std::make_shared<const std::string>(webp_file(still, true))}, text_item{"?"}},
        2);
  h.ask(2, {video_item{{frame(64, 64), frame(64, 64), frame(64, 64)}, hum(2), 1}, text_item{"what?"}});
  h.ask(3, {text_item{"no more pictures"}});
  h.run();
  const auto done = h.all<chat_done>();
  REQUIRE(done.size() == 3);
  const auto rows = model()->config().vision.query_num;
  CHECK(done[0].metrics.vision_slices == 3 + 1 + 1);
  CHECK(done[0].used.input_vision == 5 * rows);
  CHECK(done[0].used.input_audio == 10);
  CHECK(done[1].metrics.vision_slices == 3);
  CHECK(done[1].used.input_audio == 10);
  CHECK(done[2].used.input_vision == 0);
  for (const auto& d : done)
    CHECK(d.metrics.kv_cache_length >= d.used.input_text + d.used.input_audio + d.used.input_vision);
}

TEST_CASE("what a chat shows is refused when it is broken or too much") {
  engine_fixture h(1, 1024);
  h.engine.handle(open_chat{1, 4});
  h.ask(1, {image_item{frame(64, 64)}, image_item{broken()}});
  h.ask(2, std::vector<content_item>(20, image_item{frame(64, 64)}));
  h.ask(3, {text_item{"still there?"}});
  h.run();
  const auto failures = h.all<failed>();
  REQUIRE(failures.size() == 2);
  CHECK(failures[0].kind == failure_kind::invalid);
  CHECK_THAT(failures[0].message, Catch::StartsWith("picture 1: not a readable JPEG file"));
  CHECK(failures[1].kind == failure_kind::context_full);
  CHECK(h.all<chat_done>().size() == 1);
}

TEST_CASE("a picture among thoughts that the template drops is refused") {
  engine_fixture h(1, 1024);
  h.engine.handle(open_chat{1, 4});
  submit_turn t;
  t.session = 1;
  t.turn = 1;
  t.messages = {{role::user, {text_item{"Look."}}},
                {role::assistant, {image_item{frame(64, 64)}, text_item{"<think>x</think>ok"}}},
                {role::user, {image_item{frame(64, 64)}, text_item{"What is this?"}}}};
  t.max_new_tokens = 6;
  h.engine.handle(std::move(t));
  h.ask(2, {text_item{"still there?"}});
  h.run();
  const auto failures = h.all<failed>();
  REQUIRE(failures.size() == 1);
  CHECK(failures.front().kind == failure_kind::invalid);
  CHECK(h.all<chat_done>().size() == 1);
}
