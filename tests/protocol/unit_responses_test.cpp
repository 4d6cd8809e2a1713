#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>

// How a client may choose, in `config`, how units and turns are named and ended (docs/protocol.md 15).
namespace parley::protocol::test {

namespace {

/// ACTIVE, after an init with that `config`.
driver& to_active_with(driver& d, std::string_view config) {
  d.to_connected();
  d.frame(init_frame(R"({"config":)" + std::string(config) + "}"));
  d.opened();
  return d;
}

const response_done& done(const driver& d) {
  return said_event<response_done>(d.last);
}

constexpr std::string_view by_unit = R"({"unit_responses":true})";

} // namespace

TEST_CASE("unit responses: each unit ends with one terminal event, which has a response id of its own") {
  driver d;
  to_active_with(d, by_unit);
  d.append();
  CHECK(d.step(listen_report(0)) == "listen[0]");
  const std::string listened = delta(d).response_id;

  d.append();
  CHECK(d.step(text_report(1, "one ", false)) == "text[1](one )");
  const std::string spoke = delta(d).response_id;
  CHECK(spoke != listened);
  CHECK(d.step(audio_report(1, 24'000, false)) == "audio(24000) done:unit_end(one )");
  CHECK(delta(d).response_id == spoke);
  CHECK(done(d).response_id == spoke);
  CHECK(done(d).input_id == "input_2");
  CHECK(done(d).used == small_usage());
  CHECK(done(d).measured.kv_cache_length == 100);
  CHECK_FALSE(done(d).measured.wall_clock_ms);

  d.append();
  CHECK(d.step(audio_report(2, 12'000, true, true)) == "audio[2](12000)! done:turn_end()");
  CHECK(done(d).response_id != spoke);
  d.append();
  CHECK(d.step(listen_report(3)) == "listen[3]");
}

TEST_CASE("unit responses: turn_id changes with the first word after a turn") {
  driver d;
  to_active_with(d, by_unit);
  std::vector<std::string> ids;
  std::uint64_t unit = 0;
  for (const std::string kind : {"listen", "speak", "speak", "end", "listen", "speak", "listen", "end", "end"}) {
    d.append();
    d.step(kind == "listen" ? listen_report(unit) : audio_report(unit, 100, true, kind == "end"));
    ids.push_back(delta(d).turn_id);
    if (kind != "listen") CHECK(done(d).turn_id == ids.back());
    ++unit;
  }
  CHECK(ids == std::vector<std::string>{"turn_1", "turn_1", "turn_1", "turn_1", "turn_2", "turn_2", "turn_2", "turn_3",
                                        "turn_4"});
}

TEST_CASE("unit responses: a cut step ends with its listen") {
  driver d;
  to_active_with(d, by_unit);
  d.append();
  CHECK(d.step(text_report(0, "I was", false)) == "text[0](I was)");
  const std::string unit = delta(d).response_id;
  CHECK(d.append(unit_samples, R"(,"force_listen":true)") == "cut");
  conversation::step_output listen = listen_report(0);
  listen.first = false;
  CHECK(d.step(listen) == "listen unit:1!");
  CHECK(delta(d).response_id == unit);
  CHECK(delta(d).turn_id == "turn_1");
  CHECK(d.step(listen_report(1)) == "listen[1]");
  CHECK(delta(d).turn_id == "turn_2");
}

TEST_CASE("unit responses: a unit that comes to nothing has its terminal event too") {
  driver d;
  to_active_with(d, by_unit);
  d.append();
  CHECK(d.failed(failure(0)) == "error:inference_error done:error()");
  CHECK(done(d).response_id.size() == 17);
  d.append();
  CHECK(d.step(text_report(1, "half", false)) == "text[1](half)");
  const std::string unit = delta(d).response_id;
  CHECK(d.failed(failure(1)) == "error:inference_error done:error(half)");
  CHECK(done(d).response_id == unit);
  CHECK(done(d).turn_id == "turn_1");
  d.append();
  CHECK(d.failed(failure(2, conversation::failure_kind::invalid)) == "error:invalid_payload done:error()");
  CHECK(done(d).turn_id == "turn_2");
}

TEST_CASE("unit responses: a unit keeps its name when its worker is lost") {
  driver d;
  to_active_with(d, by_unit);
  d.append();
  CHECK(d.step(text_report(0, "so ", false)) == "text[0](so )");
  const std::string unit = delta(d).response_id;
  CHECK(d.worker_lost() == "enqueue:head");
  CHECK(d.grant() == "restore");
  CHECK(d.restored() == "unit:0");
  CHECK(d.step(text_report(0, "so ", false)) == "");
  CHECK(d.step(audio_report(0, 24'000, false)) == "audio(24000) done:unit_end(so )");
  CHECK(delta(d).response_id == unit);
  CHECK(done(d).response_id == unit);
}

TEST_CASE("unit responses: the answer to an append that makes no unit has a name of its own") {
  driver d;
  to_active_with(d, by_unit);
  d.append();
  d.step(listen_report(0));
  const std::string unit = delta(d).response_id;
  CHECK(d.append(8'000, R"(,"force_listen":true)") == "listen");
  CHECK(delta(d).response_id != unit);
  CHECK(delta(d).turn_id == "turn_1");
}

TEST_CASE("unit responses: a turn has no response.done besides those of its units") {
  session_limits limits;
  limits.duplex_response_done = true;
  driver d({.limits = limits});
  to_active_with(d, by_unit);
  d.append();
  CHECK(d.step(text_report(0, "one ")) == "text[0](one ) done:unit_end(one )");
  d.append();
  CHECK(d.step(listen_report(1)) == "listen[1]");
}

TEST_CASE("listen at the turn's end: the last second says it, with the turn's id and the same metrics") {
  driver d;
  to_active_with(d, R"({"listen_at_turn_end":true})");
  d.append();
  CHECK(d.step(text_report(0, "one ")) == "text[0](one )");
  const std::string turn = delta(d).response_id;
  d.append();
  d.now += 40ms;
  CHECK(d.step(audio_report(1, 12'000, true, true, 130)) == "audio[1](12000)! listen");
  const output_delta& listen = delta(d, 1);
  CHECK(listen.response_id == turn);
  CHECK(listen.input_id == "input_2");
  CHECK(listen.measured.kv_cache_length == 130);
  CHECK(listen.measured.wall_clock_ms == delta(d, 0).measured.wall_clock_ms);
  CHECK_FALSE(listen.chunk_index);
  CHECK_FALSE(listen.chunk_usage);
  CHECK_FALSE(listen.end_of_turn);
  CHECK(listen.turn_id.empty());
  d.append();
  CHECK(d.step(listen_report(2)) == "listen[2]");
  CHECK(delta(d).response_id != turn);
  CHECK_FALSE(delta(d).closes_turn);
}

TEST_CASE("listen at the turn's end: it is the last unit's terminal event") {
  driver d;
  to_active_with(d, R"({"listen_at_turn_end":true,"unit_responses":true})");
  d.append();
  CHECK(d.step(text_report(0, "one ")) == "text[0](one ) done:unit_end(one )");
  d.append();
  CHECK(d.step(audio_report(1, 12'000, true, true)) == "audio[1](12000)! listen");
  CHECK(delta(d, 1).response_id == delta(d, 0).response_id);
  CHECK(delta(d, 1).turn_id == "turn_1");
  d.append();
  CHECK(d.step(listen_report(2)) == "listen[2]");
  CHECK(delta(d).turn_id == "turn_2");
}

TEST_CASE("listen at the turn's end: a cut turn has one listen, as ever") {
  driver d;
  to_active_with(d, R"({"listen_at_turn_end":true})");
  d.append();
  CHECK(d.append(unit_samples, R"(,"force_listen":true)") == "cut");
  CHECK(d.step(audio_report(0, 24'000, true, true)) == "listen[0] unit:1!");
}

} // namespace parley::protocol::test
