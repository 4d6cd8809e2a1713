#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

// docs/protocol.md 4.1, 4.2 and 6, through the machine's interface.
namespace parley::protocol::test {

TEST_CASE("steps run one at a time, answers leave in order") {
  driver d;
  d.to_active();
  CHECK(d.append() == "unit:0");
  CHECK(d.append() == "");
  CHECK(d.append() == "");
  CHECK(d.step(listen_report(0)) == "listen[0] unit:1");
  CHECK(d.step(listen_report(7)) == ""); // for a step that is not running
  CHECK(d.step(text_report(1, "hi", false)) == "text[1](hi)");
  CHECK(d.step(audio_report(1, 24'000, false)) == "audio(24000) unit:2");
  CHECK(d.step(audio_report(2, 12'000, true, true)) == "audio[2](12000)!");
}

TEST_CASE("small appends are gathered, long ones give several steps") {
  driver d;
  d.to_active();
  CHECK(d.append(320) == "unit:0"); // silence before the first append makes it a unit
  CHECK(d.step(listen_report(0)) == "listen[0]");
  for (int i = 0; i < 49; ++i) CHECK(d.append(320) == "");
  CHECK(d.append(320) == "unit:1");
  CHECK(std::get<submit_unit>(d.last.back()).samples->size() == unit_samples);
  CHECK(d.step(listen_report(1)) == "listen[1]");
  CHECK(delta(d).input_id == "input_51");

  CHECK(d.append(50'000) == "unit:2");
  CHECK(d.step(listen_report(2)) == "listen[2] unit:3");
  CHECK(d.step(listen_report(3)) == "listen[3] unit:4");
  CHECK(d.step(listen_report(4)) == "listen[4]");
  CHECK(delta(d).input_id == "input_52");
  CHECK(delta(d).measured.backlog_samples == 2000);
}

TEST_CASE("input ids count every append, rejected and foreign ones included") {
  driver d;
  d.to_active();
  d.append();
  CHECK(d.frame(R"({"type":"input.append","input":{"audio":"?"}})") == "error:invalid_payload");
  CHECK(d.frame(append_frame(dialect::legacy)) == "error:invalid_event");
  d.append();
  d.step(listen_report(0));
  CHECK(delta(d).input_id == "input_1");
  d.step(listen_report(1));
  CHECK(delta(d).input_id == "input_4");
}

TEST_CASE("an append's own name is echoed by every answer to the unit that it completes") {
  driver d;
  d.to_active();
  const auto named = [&](std::size_t samples, const std::string& name) {
    return d.frame(append_frame(dialect::current, samples, R"(,"input_id":)" + name));
  };
  CHECK(named(unit_samples, R"("mine-1")") == "unit:0");
  CHECK(d.step(text_report(0, "hi", false)) == "text[0](hi)");
  CHECK(delta(d).input_id == "mine-1");
  CHECK(d.step(audio_report(0, 24'000)) == "audio(24000)");
  CHECK(delta(d).input_id == "mine-1");
  named(8'000, R"("mine-2")");
  named(8'000, "17");
  d.step(listen_report(1));
  CHECK(delta(d).input_id == "17");
  for (const std::string& no_name : {std::string("null"), std::string("{}"), '"' + std::string(257, 'x') + '"'}) {
    named(unit_samples, no_name);
    d.step(listen_report(std::get<submit_unit>(d.last.back()).unit));
    CHECK(delta(d).input_id.starts_with("input_"));
  }
}

TEST_CASE("a short append that forces to listen is answered at once") {
  constexpr std::string_view forced = R"(,"force_listen":true)";
  driver d;
  d.to_active();
  CHECK(d.append(8'000, forced) == "unit:0!"); // the first append is a unit
  CHECK(d.step(listen_report(0)) == "listen[0]");
  CHECK(d.append(8'000, forced) == "listen");
  CHECK(delta(d).input_id == "input_2");
  CHECK_FALSE(delta(d).measured.wall_clock_ms);
  CHECK_FALSE(delta(d).chunk_index);
  CHECK(d.append(4'000) == ""); // answered together with the unit
  CHECK(d.append(4'000) == "unit:1!");
  CHECK(d.append(4'000, forced) == "cut"); // the running step gives the answer
  CHECK(d.append(4'000, forced) == "");
  CHECK(d.step(listen_report(1)) == "listen[1]");
}

TEST_CASE("the last delta of a step, and no other, carries wall_clock_ms") {
  driver d;
  d.to_active();
  d.append();
  d.now += 250ms;
  conversation::step_output text = text_report(0, "hi", false, 120);
  text.metrics.generate_ms = 7;
  d.step(text);
  CHECK(delta(d).measured.kv_cache_length == 120);
  CHECK_FALSE(delta(d).measured.wall_clock_ms);
  CHECK_FALSE(delta(d).measured.generate_ms);
  CHECK_FALSE(delta(d).measured.dropped_chunks);

  d.append();
  d.now += 150ms;
  conversation::step_output audio = audio_report(0, 24'000, false, false, 121);
  audio.metrics.generate_ms = 9;
  audio.metrics.vision_slices = 0;
  audio.metrics.vision_tokens = 0;
  d.step(audio);
  const metrics& full = delta(d).measured;
  CHECK(full.kv_cache_length == 121);
  CHECK(full.wall_clock_ms == 400.0);
  CHECK(full.queue_ms == 0.0);
  CHECK(full.generate_ms == 9.0);
  CHECK(full.dropped_chunks == 0);
  CHECK(full.backlog_samples == 16'000);
  CHECK_FALSE(full.vision_slices);
  CHECK_FALSE(full.vision_tokens);

  d.now += 30ms;
  d.step(listen_report(1));
  CHECK(delta(d).measured.queue_ms == 150.0);
  CHECK(delta(d).measured.wall_clock_ms == 30.0);
}

TEST_CASE("a step with frames tells its vision cost") {
  driver d({.mode = "video"});
  d.to_active();
  const std::string frames = R"(,"video_frames":[")" + std::string(tiny_jpeg_base64()) + R"("],"max_slice_nums":4)";
  CHECK(d.append(unit_samples, frames) == "unit:0");
  const auto& unit = std::get<submit_unit>(d.last.back());
  CHECK(unit.frames.size() == 1);
  CHECK(unit.max_slice_nums == 4);
  conversation::step_output report = listen_report(0);
  report.metrics.vision_slices = 5;
  report.metrics.vision_tokens = 320;
  d.step(report);
  CHECK(delta(d).measured.vision_slices == 5);
  CHECK(delta(d).measured.vision_tokens == 320);
}

TEST_CASE("usage and chunk_index are on a step's first delta only, and add up") {
  driver d;
  d.to_active();
  const usage created = said_event<session_created>(d.last).total;
  CHECK(created == small_usage());
  d.append();
  d.step(text_report(0, "a", false));
  CHECK(delta(d).chunk_index == 0);
  CHECK(delta(d).chunk_usage == small_usage());
  CHECK(delta(d).total->input_audio == 20);
  conversation::step_output audio = audio_report(0, 100, false);
  audio.used = {};
  d.step(audio);
  CHECK_FALSE(delta(d).chunk_index);
  CHECK_FALSE(delta(d).chunk_usage);
  CHECK_FALSE(delta(d).total);
  d.frame(close_frame());
  CHECK(said_event<session_closed>(d.last).total->input_audio == 20);
}

TEST_CASE("one response id a speaking turn, a fresh one for each listen") {
  driver d;
  d.to_active();
  std::vector<std::string> ids;
  std::uint64_t unit = 0;
  for (const char* kind : {"listen", "listen", "speak", "speak", "end", "speak", "listen", "speak"}) {
    d.append();
    if (kind == std::string("listen")) {
      d.step(listen_report(unit++));
    } else {
      d.step(audio_report(unit++, 100, true, kind == std::string("end")));
    }
    ids.push_back(delta(d).response_id);
    CHECK(ids.back().size() == 17);
  }
  CHECK(ids[0] != ids[1]);
  CHECK(ids[1] != ids[2]);
  CHECK(ids[2] == ids[3]);
  CHECK(ids[3] == ids[4]);
  CHECK(ids[4] != ids[5]);
  CHECK(ids[5] != ids[6]);
  CHECK(ids[5] != ids[7]); // the listen in between ended the turn
}

TEST_CASE("legacy: text and sound of a step leave as one event") {
  driver d;
  d.to_active(dialect::legacy);
  d.append();
  CHECK(d.step(text_report(0, "hi", false)) == "");
  CHECK(d.step(audio_report(0, 24'000, false, true)) == "audio[0](hi,24000)!");
  d.append();
  CHECK(d.step(text_report(1, "", true)) == "text[1]()");
  d.append();
  CHECK(d.step(audio_report(2, 100)) == "audio[2](100)");
}

TEST_CASE("newest wins while a step runs") {
  driver d;
  d.to_active();
  d.append();
  for (int i = 0; i < 6; ++i) d.append();
  d.step(listen_report(0));
  CHECK(delta(d).measured.dropped_chunks == 4);
  CHECK(delta(d).measured.backlog_samples == 32'000);
  d.step(listen_report(1));
  CHECK(delta(d).input_id == "input_6");
  d.step(listen_report(2));
  CHECK(delta(d).input_id == "input_7");
}

TEST_CASE("force_listen cuts the running step") {
  driver d;
  d.to_active();
  d.append();

  SECTION("before a delta has left: one listen with chunk_index") {
    CHECK(d.append(unit_samples, R"(,"force_listen":true)") == "cut");
    CHECK(d.append(320, R"(,"force_listen":true)") == ""); // the step is cut already
    CHECK(d.step(listen_report(0)) == "listen[0] unit:1!");
    CHECK(delta(d).measured.wall_clock_ms);
  }
  SECTION("an append that completes no unit cuts as well") {
    CHECK(d.append(320, R"(,"hints":{"force_listen":true})") == "cut");
  }
  SECTION("after a delta has left: a listen without chunk_index") {
    CHECK(d.step(text_report(0, "I was", false)) == "text[0](I was)");
    const std::string turn = delta(d).response_id;
    CHECK(d.append(unit_samples, R"(,"force_listen":true)") == "cut");
    conversation::step_output listen = listen_report(0);
    listen.first = false;
    CHECK(d.step(listen) == "listen unit:1!");
    CHECK(delta(d).measured.wall_clock_ms);
    CHECK_FALSE(delta(d).chunk_usage);
    CHECK(delta(d).response_id != turn);
  }
  SECTION("what was on its way is discarded, its tokens are counted") {
    CHECK(d.append(unit_samples, R"(,"force_listen":true)") == "cut");
    CHECK(d.step(text_report(0, "too late", false)) == "");
    conversation::step_output audio = audio_report(0, 24'000, false, true);
    audio.used = {};
    CHECK(d.step(audio) == "listen[0] unit:1!"); // an interrupted turn has no end_of_turn
    CHECK(delta(d).chunk_usage == small_usage());
    CHECK_FALSE(delta(d).audio);
    CHECK(delta(d).text.empty());
  }
  SECTION("its flag marks every unit with a sample of it") {
    CHECK(d.append(24'000, R"(,"force_listen":true)") == "cut");
    CHECK(d.append(8'000) == "");
    CHECK(d.step(listen_report(0)) == "listen[0] unit:1!");
    CHECK(d.step(listen_report(1)) == "listen[1] unit:2!");
  }
}

TEST_CASE("legacy: a cut step discards the text that it held") {
  driver d;
  d.to_active(dialect::legacy);
  d.append();
  CHECK(d.step(text_report(0, "held", false)) == "");
  CHECK(d.append(4'000, R"(,"force_listen":true)") == "cut");
  CHECK(d.step(audio_report(0, 10, false)) == "listen[0]");
}

TEST_CASE("force_listen of a dropped unit passes to the oldest one kept") {
  driver d;
  d.to_active();
  d.append();
  CHECK(d.append(unit_samples, R"(,"force_listen":true)") == "cut");
  d.append();
  d.append();
  d.append();
  CHECK(d.step(listen_report(0)) == "listen[0] unit:1!");
  CHECK(d.step(listen_report(1)) == "listen[1] unit:2");
}

TEST_CASE("a failed step is lost, the session goes on") {
  driver d;
  d.to_active();
  d.append();
  d.append();
  CHECK(d.failed(failure(0)) == "error:inference_error unit:1");
  CHECK(d.step(listen_report(1)) == "listen[1]");

  SECTION("three in a row end it") {
    for (std::uint64_t unit = 2; unit < 4; ++unit) {
      d.append();
      CHECK(d.failed(failure(unit)) == "error:inference_error");
    }
    d.append();
    CHECK(d.failed(failure(4)) == "error:inference_error closed:backend_error close:1011 close_engine");
  }
  SECTION("an answer in between starts the count anew") {
    for (std::uint64_t unit = 2; unit < 14; unit += 3) {
      for (int i = 0; i < 2; ++i) {
        d.append();
        CHECK(d.failed(failure(unit + static_cast<std::uint64_t>(i))) == "error:inference_error");
      }
      d.append();
      d.step(listen_report(unit + 2));
    }
  }
}

TEST_CASE("a model that does not see refuses frames with their whole append") {
  driver d({.mode = "video", .able = {true, false, false}});
  d.to_active();
  const std::string frames = R"(,"video_frames":[")" + std::string(tiny_jpeg_base64()) + R"("])";
  CHECK(d.append(unit_samples, frames) == "error:invalid_payload");
  CHECK(d.append(unit_samples, R"(,"video_frames":[])") == "unit:0");
  d.step(listen_report(0));
  CHECK(delta(d).input_id == "input_2");
}

TEST_CASE("in audio mode frames are ignored") {
  driver d({.mode = "audio", .able = {true, false, false}});
  d.to_active();
  CHECK(d.append(unit_samples, R"(,"video_frames":["no picture"])") == "unit:0");
  CHECK(std::get<submit_unit>(d.last.back()).frames.empty());
}

TEST_CASE("a model that does not speak is not asked to") {
  driver d({.able = {true, false, false}});
  d.to_connected();
  d.frame(init_frame());
  CHECK_FALSE(opened_duplex(d).options.generate_audio);
}

TEST_CASE("response.done in duplex for clients of other servers") {
  session_limits limits;
  limits.duplex_response_done = true;
  driver d({.limits = limits});
  d.to_active();
  for (int i = 0; i < 4; ++i) d.append();
  CHECK(d.step(text_report(0, "one ")) == "text[0](one ) unit:1");
  CHECK(d.append() == "");
  conversation::step_output last = text_report(1, "two");
  last.end_of_turn = true;
  CHECK(d.step(last) == "text[1](two)! done:turn_end(one two) unit:2");
  CHECK(d.step(text_report(2, "three")) == "text[2](three) unit:3");
  CHECK(d.step(listen_report(3)) == "done:cancelled(three) listen[3]");
}

namespace {

std::string context_frame(const std::string& text) {
  return R"({"type":"input.append","input":{"context":[{"role":"user","content":")" + text + R"("}]}})";
}

std::string context_of(const submit_unit& unit) {
  std::string text;
  for (const auto& each : unit.context) text += each.text + " ";
  return text;
}

} // namespace

TEST_CASE("context goes with the next unit that begins") {
  driver d;
  d.to_active();
  CHECK(d.frame(context_frame("a")) == ""); // without sound there is nothing to decide
  CHECK(d.append() == "unit:0");
  CHECK(context_of(std::get<submit_unit>(d.last.back())) == "a ");
  CHECK(d.append(unit_samples, R"(,"context":[{"role":"tool","content":"b"}])") == "");
  CHECK(d.step(listen_report(0)) == "listen[0] unit:1");
  const auto& unit = std::get<submit_unit>(d.last.back());
  CHECK(context_of(unit) == "b ");
  CHECK(unit.context[0].from == conversation::role::tool);
  CHECK(d.step(listen_report(1)) == "listen[1]");
  CHECK(delta(d).input_id == "input_3"); // an append like any other
}

TEST_CASE("context without sound may interrupt") {
  constexpr std::string_view forced =
      R"({"type":"input.append","input":{"context":[{"role":"user","content":"Stop."}],"force_listen":true}})";
  driver d;
  d.to_active();
  d.append();
  CHECK(d.frame(forced) == "cut");
  CHECK(d.step(listen_report(0)) == "listen[0]");
  CHECK(d.frame(forced) == "listen");
}

TEST_CASE("context that waits is bounded, and more of it is refused") {
  driver d;
  d.to_active();
  const std::string long_text(8000, 'x');
  CHECK(d.frame(context_frame(long_text)) == "");
  CHECK(d.frame(context_frame(long_text)) == "");
  CHECK(d.frame(context_frame(long_text)) == "error:invalid_payload");
  CHECK(d.append() == "unit:0");
  CHECK(std::get<submit_unit>(d.last.back()).context.size() == 2);
  CHECK(d.frame(context_frame(long_text)) == ""); // there is room again
}

TEST_CASE("a step that is submitted again has the same context") {
  driver d;
  d.to_active();
  d.append(unit_samples, R"(,"context":[{"role":"user","content":"a"}])");
  d.worker_lost();
  d.frame(context_frame("b"));
  d.append();
  d.grant();
  CHECK(d.restored() == "unit:0");
  CHECK(context_of(std::get<submit_unit>(d.last.back())) == "a ");
  CHECK(d.step(listen_report(0)) == "listen[0] unit:1");
  CHECK(context_of(std::get<submit_unit>(d.last.back())) == "b ");
}

TEST_CASE("context for which the engine has no room costs its second, and the session goes on") {
  driver d;
  d.to_active();
  d.append(unit_samples, R"(,"context":[{"role":"user","content":"a"}])");
  CHECK(d.failed(failure(0, conversation::failure_kind::invalid)) == "error:invalid_payload");
  CHECK(d.append() == "unit:1");
  CHECK(std::get<submit_unit>(d.last.back()).context.empty());
}

} // namespace parley::protocol::test
