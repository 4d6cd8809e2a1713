#include "protocol/codec/server_codec.hpp"

#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <limits>

using namespace parley::protocol;
namespace test = parley::protocol::test;
using test::dom;

namespace {

const encode_context current{dialect::current, "sess_x", false, 1'700'000'000.25};
const encode_context legacy{dialect::legacy, "rt_1714200000000", false, 1'700'000'000.25};
const encode_context undecided{};

const usage used{3, 2, 64, 5, 7};
const dom used_dom{{"total_tokens", 81},
                   {"input_tokens", 69},
                   {"output_tokens", 12},
                   {"input_token_details", {{"text_tokens", 3}, {"audio_tokens", 2}, {"vision_tokens", 64}}},
                   {"output_token_details", {{"text_tokens", 5}, {"audio_tokens", 7}}}};

pcm make_pcm(std::vector<float> samples) {
  return std::make_shared<const std::vector<float>>(std::move(samples));
}

dom encoded(const server_event& event, const encode_context& context) {
  auto text = encode(event, context);
  CAPTURE(text);
  return dom::parse(text);
}

output_delta speaking() {
  output_delta out;
  out.kind = output_kind::text;
  out.text = "Hello";
  out.response_id = "resp_1";
  out.input_id = "input_4";
  out.chunk_index = 3;
  out.chunk_usage = usage{1, 10, 0, 5, 0};
  out.total = used;
  out.measured.kv_cache_length = 1024;
  return out;
}

} // namespace

TEST_CASE("server: queue events are the same in every dialect") {
  queue_position place{2, 19.5, "ticket_0123456789ab", 3};
  dom expected{{"type", "session.queued"},
               {"position", 2},
               {"estimated_wait_s", 19.5},
               {"ticket_id", "ticket_0123456789ab"},
               {"queue_length", 3}};
  for (auto& context : {current, legacy, undecided}) {
    expected["type"] = "session.queued";
    CHECK(encoded(session_queued{place}, context) == expected);
    expected["type"] = "session.queue_update";
    CHECK(encoded(session_queue_update{place}, context) == expected);
    CHECK(encoded(session_queue_done{}, context) == dom{{"type", "session.queue_done"}});
  }
}

TEST_CASE("server: session.created") {
  session_created event;
  event.prompt_length = 256;
  event.total = used;
  event.measured.kv_cache_length = 256;
  event.measured.backend = "libtorch";
  event.recording_id = "rec";
  CHECK(encoded(event, current) == dom{{"type", "session.created"},
                                       {"session_id", "sess_x"},
                                       {"prompt_length", 256},
                                       {"mode", "full_duplex"},
                                       {"metrics", {{"backend", "libtorch"}, {"kv_cache_length", 256}}},
                                       {"usage", used_dom},
                                       {"recording_id", "rec"}});
  CHECK(encoded(event, legacy) ==
        dom{{"type", "session.created"}, {"session_id", "rt_1714200000000"}, {"prompt_length", 256}});
  event.turn_based = true;
  event.prompt_length.reset();
  event.recording_id.reset();
  event.measured = {};
  CHECK(encoded(event, current) == dom{{"type", "session.created"},
                                       {"session_id", "sess_x"},
                                       {"mode", "turn_based"},
                                       {"metrics", dom::object()},
                                       {"usage", used_dom}});
}

TEST_CASE("server: a text delta of the current dialect") {
  auto event = speaking();
  dom expected{{"type", "response.output.delta"},
               {"kind", "text"},
               {"text", "Hello"},
               {"session_id", "sess_x"},
               {"response_id", "resp_1"},
               {"input_id", "input_4"},
               {"chunk_index", 3},
               {"metrics", {{"kv_cache_length", 1024}}},
               {"usage", used_dom},
               {"server_send_ts", 1'700'000'000.25}};
  expected["chunk_usage"] =
      dom{{"total_tokens", 16},
          {"input_tokens", 11},
          {"output_tokens", 5},
          {"input_token_details", {{"text_tokens", 1}, {"audio_tokens", 10}, {"vision_tokens", 0}}},
          {"output_token_details", {{"text_tokens", 5}, {"audio_tokens", 0}}}};
  CHECK(encoded(event, current) == expected);
  event.end_of_turn = true;
  expected["end_of_turn"] = true;
  CHECK(encoded(event, current) == expected);
  event.turn_id = "turn_2";
  expected["turn_id"] = "turn_2";
  CHECK(encoded(event, current) == expected);
  event.text.clear();
  expected["text"] = "";
  CHECK(encoded(event, current) == expected);
}

TEST_CASE("server: an audio delta of the current dialect") {
  output_delta event;
  event.kind = output_kind::audio;
  event.text = "belongs to the other delta";
  event.audio =
      make_pcm({0.5f, -0.25f, 3.0f, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()});
  event.response_id = "resp_1";
  auto out = encoded(event, {dialect::current, "s", false, 0});
  CHECK(test::samples_of(test::from_base64(out["audio"].get<std::string>())) ==
        std::vector<float>{0.5f, -0.25f, 1.0f, 0.0f, -1.0f});
  out.erase("audio");
  CHECK(out == dom{{"type", "response.output.delta"},
                   {"kind", "audio"},
                   {"session_id", "s"},
                   {"response_id", "resp_1"},
                   {"metrics", dom::object()}});
  event.audio = nullptr;
  CHECK(encoded(event, current)["audio"] == "");
}

TEST_CASE("server: listening") {
  output_delta event;
  event.response_id = "resp_2";
  event.measured.kv_cache_length = 7;
  CHECK(encoded(event, {dialect::current, "s", false, 0}) == dom{{"type", "response.output.delta"},
                                                                 {"kind", "listen"},
                                                                 {"session_id", "s"},
                                                                 {"response_id", "resp_2"},
                                                                 {"metrics", {{"kv_cache_length", 7}}}});
  CHECK(encoded(event, legacy) == dom{{"type", "response.listen"}, {"kv_cache_length", 7}});
}

TEST_CASE("server: the legacy dialect has one delta for text and sound") {
  auto event = speaking();
  CHECK(encoded(event, legacy) == dom{{"type", "response.output_audio.delta"},
                                      {"text", "Hello"},
                                      {"audio", ""},
                                      {"end_of_turn", false},
                                      {"kv_cache_length", 1024}});
  event.kind = output_kind::audio;
  event.audio = make_pcm({0.5f});
  event.end_of_turn = true;
  CHECK(encoded(event, legacy) == dom{{"type", "response.output_audio.delta"},
                                      {"text", "Hello"},
                                      {"audio", "AAAAPw=="},
                                      {"end_of_turn", true},
                                      {"kv_cache_length", 1024}});
  event.text.clear();
  event.measured.kv_cache_length.reset();
  auto out = encoded(event, legacy);
  CHECK(out["text"] == "");
  CHECK(out["kv_cache_length"] == 0);
}

TEST_CASE("server: legacy extras add metrics and usage, and nothing else") {
  auto context = legacy;
  context.legacy_extras = true;
  auto out = encoded(speaking(), context);
  CHECK(out["metrics"] == dom{{"kv_cache_length", 1024}});
  CHECK(out["usage"] == used_dom);
  CHECK(out.contains("chunk_usage"));
  CHECK(out.size() == 8);
  session_created created;
  created.total = used;
  out = encoded(created, context);
  CHECK(out["usage"] == used_dom);
  CHECK_FALSE(out.contains("mode"));
  CHECK(encoded(session_closed{"stopped", used}, context) ==
        dom{{"type", "session.closed"}, {"reason", "stopped"}, {"usage", used_dom}});
  context.spoken = dialect::undecided;
  CHECK(encoded(session_closed{"timeout", used}, context) == dom{{"type", "session.closed"}, {"reason", "timeout"}});
}

TEST_CASE("server: response.done") {
  response_done event{"resp_1", "input_1", "The answer", nullptr, "turn_end", {}, used};
  event.measured.n_tokens = 12;
  dom expected{{"type", "response.done"},       {"session_id", "sess_x"}, {"response_id", "resp_1"},
               {"input_id", "input_1"},         {"text", "The answer"},   {"reason", "turn_end"},
               {"metrics", {{"n_tokens", 12}}}, {"usage", used_dom}};
  CHECK(encoded(event, current) == expected);
  event.audio = make_pcm({0.5f});
  expected["audio"] = "AAAAPw==";
  CHECK(encoded(event, current) == expected);
  event.turn_id = "turn_2";
  expected["turn_id"] = "turn_2";
  CHECK(encoded(event, current) == expected);
}

TEST_CASE("server: going away, closing, errors") {
  CHECK(encoded(session_go_away{"timeout", 30'000}, current) ==
        dom{{"type", "session.go_away"}, {"reason", "timeout"}, {"time_left_ms", 30'000}, {"session_id", "sess_x"}});
  CHECK(encoded(session_closed{"user_stop", used}, current) ==
        dom{{"type", "session.closed"}, {"reason", "user_stop"}, {"session_id", "sess_x"}, {"usage", used_dom}});
  CHECK(encoded(session_closed{"timeout", {}}, {dialect::current, "", false, 0}) ==
        dom{{"type", "session.closed"}, {"reason", "timeout"}});
  for (auto& context : {legacy, undecided}) {
    CHECK(encoded(session_go_away{"context_full", 0}, context) ==
          dom{{"type", "session.go_away"}, {"reason", "context_full"}, {"time_left_ms", 0}});
    CHECK(encoded(session_closed{"stopped", used}, context) == dom{{"type", "session.closed"}, {"reason", "stopped"}});
  }
  for (std::size_t i = 0; i < error_table.size(); ++i) {
    auto code = static_cast<error_code>(i);
    dom expected{{"type", "error"},
                 {"error",
                  {{"code", error_table[i].wire},
                   {"message", "m"},
                   {"type", error_table[i].client_fault ? "client_error" : "server_error"}}}};
    for (auto& context : {current, legacy, undecided}) CHECK(encoded(error_event{code, "m"}, context) == expected);
  }
}

TEST_CASE("server: every metric has its name") {
  metrics all{"libtorch", 1, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10, 11, 12, 13, 14, 15, 16};
  output_delta event;
  event.measured = all;
  CHECK(encoded(event, current)["metrics"] == dom{{"backend", "libtorch"},
                                                  {"kv_cache_length", 1},
                                                  {"prefill_ms", 2.5},
                                                  {"generate_ms", 3.5},
                                                  {"wall_clock_ms", 4.5},
                                                  {"cost_llm_ms", 5.5},
                                                  {"cost_tts_prep_ms", 6.5},
                                                  {"cost_tts_ms", 7.5},
                                                  {"cost_token2wav_ms", 8.5},
                                                  {"queue_ms", 9.5},
                                                  {"n_tokens", 10},
                                                  {"n_tts_tokens", 11},
                                                  {"vision_slices", 12},
                                                  {"vision_tokens", 13},
                                                  {"dropped_chunks", 14},
                                                  {"backlog_samples", 15},
                                                  {"window_events", 16}});
}

TEST_CASE("server: any text becomes a JSON string that means it") {
  std::string controls;
  for (char c = 0; c < 0x20; ++c) controls += c;
  for (const auto& text :
       {controls, std::string("\"\\/\x7F"), std::string("h\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xE2\x80\xA8")}) {
    auto event = speaking();
    event.text = text;
    CHECK(encoded(event, current)["text"] == text);
    CHECK(encoded(event, legacy)["text"] == text);
    CHECK(encoded(error_event{error_code::unknown_event, text}, current)["error"]["message"] == text);
  }
}

TEST_CASE("server: malformed UTF-8 is replaced, byte by byte") {
  const std::vector<std::pair<std::string, std::string>> rows{
      {"a\xFFz", "a\xEF\xBF\xBDz"},
      {"\xC3", "\xEF\xBF\xBD"},
      {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xE2\x82", "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xF4\x90\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\x80\"", "\xEF\xBF\xBD\""},
  };
  for (auto& [text, meaning] : rows)
    CHECK(encoded(error_event{error_code::not_ready, text}, current)["error"]["message"] == meaning);
}

TEST_CASE("server: numbers that JSON cannot hold are not written") {
  auto event = speaking();
  event.measured.wall_clock_ms = std::numeric_limits<double>::quiet_NaN();
  event.measured.prefill_ms = std::numeric_limits<double>::infinity();
  event.measured.queue_ms = std::numeric_limits<double>::max();
  auto out = encoded(event, current);
  CHECK(out["metrics"]["wall_clock_ms"] == 0.0);
  CHECK(out["metrics"]["prefill_ms"] == 0.0);
  CHECK(out["metrics"]["queue_ms"] == std::numeric_limits<double>::max());
  CHECK(encoded(session_queued{{1, std::numeric_limits<double>::infinity(), "t", 1}}, current)["estimated_wait_s"] ==
        0.0);
}

TEST_CASE("server: a second of sound comes out bit for bit") {
  std::vector<float> samples(24'000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<float>(i) / 24'000.0f - 0.5f;
  output_delta event;
  event.kind = output_kind::audio;
  event.audio = make_pcm(samples);
  CHECK(test::samples_of(test::from_base64(encoded(event, current)["audio"].get<std::string>())) == samples);
}
