#include "protocol/codec/client_codec.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

using namespace parley::protocol;
namespace test = parley::protocol::test;
using test::dom;

namespace {

result<init_event> init_text(const std::string& text, std::optional<mode> url_mode = mode::video) {
  auto from = peek(text);
  REQUIRE(from);
  return decode_session_init(*from, url_mode);
}

result<init_event> init(const dom& payload, std::optional<mode> url_mode = mode::video) {
  return init_text(dom{{"type", "session.init"}, {"payload", payload}}.dump(), url_mode);
}

result<init_event> update(const dom& session, mode kind = mode::video) {
  auto text = dom{{"type", "session.update"}, {"session", session}}.dump();
  auto from = peek(text);
  REQUIRE(from);
  return decode_session_update(*from, kind);
}

std::string refusal(const result<init_event>& decoded) {
  if (decoded) return "accepted";
  return std::string(traits(decoded.error().code).wire) + " " + decoded.error().message;
}

} // namespace

TEST_CASE("session.init: an empty payload gives the defaults") {
  auto out = init(dom::object());
  REQUIRE(out);
  CHECK(out->spoken == dialect::current);
  CHECK(out->system_prompt == "You are a helpful assistant.");
  CHECK_FALSE(out->has_system_prompt);
  CHECK(out->max_slice_nums == 1);
  CHECK_FALSE(out->voice);
  CHECK_FALSE(out->tts_voice);
  CHECK_FALSE(out->turn_based);
  auto& config = out->config;
  CHECK(config.sampling.length_penalty == 1.1);
  CHECK(config.force_listen_count == 3);
  CHECK(config.max_new_speak_tokens_per_chunk == 20);
  CHECK(config.sampling.temperature == 0.7);
  CHECK(config.sampling.top_k == 20);
  CHECK(config.sampling.top_p == 0.8);
  CHECK_FALSE(config.sampling.greedy);
  CHECK(config.sampling.repetition_penalty == 1.05);
  CHECK(config.sampling.repetition_window == 512);
  CHECK(config.listen_prob_scale == 1.0);
  CHECK_FALSE(config.listen_top_k);
  CHECK(config.tts_temperature == 0.8);
  CHECK(config.generate_audio);
  CHECK_FALSE(config.window);
  CHECK_FALSE(out->seed);
  CHECK_FALSE(out->unit_responses);
  CHECK_FALSE(out->listen_at_turn_end);
}

TEST_CASE("session.init: the payload has to be an object") {
  CHECK(refusal(init_text(R"({"type":"session.init"})")) == "missing_field payload: required");
  for (std::string other : {"null", "[]", "\"x\"", "1", "true"})
    CHECK(refusal(init_text(R"({"type":"session.init","payload":)" + other + "}")) ==
          "invalid_payload payload: not an object");
}

TEST_CASE("session.init: the prompt and its alias") {
  CHECK(init({{"system_prompt", "p"}})->system_prompt == "p");
  CHECK(init({{"instructions", "i"}})->system_prompt == "i");
  CHECK(init({{"instructions", "i"}, {"system_prompt", "p"}})->system_prompt == "p");
  CHECK(init({{"instructions", "i"}, {"system_prompt", nullptr}})->system_prompt == "i");
  CHECK(init({{"system_prompt", "p"}})->has_system_prompt);
  CHECK(init({{"system_prompt", ""}})->system_prompt.empty());
  CHECK(init({{"system_prompt", ""}})->has_system_prompt);
  CHECK_FALSE(init({{"system_prompt", nullptr}})->has_system_prompt);
  CHECK(init_text(R"({"type":"session.init","payload":{"system_prompt":"a\u0000\n\ud83d\ude00"}})")->system_prompt ==
        std::string("a\0\n\xF0\x9F\x98\x80", 7));

  CHECK(init({{"system_prompt", std::string(32'768, 'x')}}));
  CHECK(refusal(init({{"system_prompt", std::string(32'769, 'x')}})) ==
        "invalid_payload payload.system_prompt: 32769 bytes, at most 32768 are allowed");
  CHECK(refusal(init({{"instructions", std::string(40'000, 'x')}})) ==
        "invalid_payload payload.instructions: 40000 bytes, at most 32768 are allowed");
  // The limit applies to the decoded text, not to its spelling in JSON.
  std::string escaped;
  for (int i = 0; i < 16'384; ++i) escaped += "\\u00e9";
  CHECK(init_text(R"({"type":"session.init","payload":{"system_prompt":")" + escaped + "\"}}")->system_prompt.size() ==
        32'768);
  CHECK(refusal(init({{"system_prompt", 5}})) == "invalid_payload payload.system_prompt: not a string");
}

TEST_CASE("session.init: payload.mode speaks only where the URL is silent") {
  CHECK(init({{"mode", "turn_based"}}, {})->turn_based == true);
  CHECK(init({{"mode", "full_duplex"}}, {})->turn_based == false);
  CHECK_FALSE(init(dom::object(), {})->turn_based);
  CHECK_FALSE(init({{"mode", nullptr}}, {})->turn_based);
  CHECK(refusal(init({{"mode", "duplex"}}, {})) == "invalid_payload payload.mode: neither turn_based nor full_duplex");
  CHECK(refusal(init({{"mode", 1}}, {})) == "invalid_payload payload.mode: not a string");
  for (auto kind : {mode::chat, mode::audio, mode::video}) {
    CHECK_FALSE(init({{"mode", "turn_based"}}, kind)->turn_based);
    CHECK(init({{"mode", 17}}, kind));
  }
}

TEST_CASE("session.init: chat reads the prompt alone") {
  dom odd{{"config", {{"temperature", 99}}},
          {"voice", "alloy"},
          {"max_slice_nums", 100},
          {"ref_audio", "?"},
          {"mode", "turn_based"}};
  for (auto url_mode : {std::optional(mode::chat), std::optional<mode>()}) {
    auto out = init(odd, url_mode);
    REQUIRE(out);
    CHECK(out->system_prompt.empty());
    CHECK_FALSE(out->has_system_prompt);
  }
  odd["system_prompt"] = "s";
  CHECK(init(odd, mode::chat)->system_prompt == "s");
  odd["system_prompt"] = 1;
  CHECK_FALSE(init(odd, mode::chat));
}

TEST_CASE("session.init: every key of config is read") {
  auto out = init({{"config",
                    {{"length_penalty", 2.5},
                     {"force_listen_count", 0},
                     {"max_new_speak_tokens_per_chunk", 33},
                     {"temperature", 0},
                     {"top_k", 7},
                     {"top_p", 0.5},
                     {"decode_mode", "greedy"},
                     {"text_repetition_penalty", 1.5},
                     {"text_repetition_window_size", 64},
                     {"listen_prob_scale", 0.25},
                     {"listen_top_k", 4},
                     {"tts_temperature", 1.25},
                     {"generate_audio", false},
                     {"sliding_window_mode", "context"},
                     {"basic_window_high_tokens", 900},
                     {"basic_window_low_tokens", 800},
                     {"seed", 42},
                     {"unit_responses", true},
                     {"listen_at_turn_end", true},
                     {"transcribe_input", true},
                     {"chunk_ms", 1000},
                     {"sample_rate", 16000},
                     {"max_slice_nums", 3},
                     {"use_tts", "ignored"}}}});
  REQUIRE(out);
  auto& config = out->config;
  CHECK(config.sampling.length_penalty == 2.5);
  CHECK(config.force_listen_count == 0);
  CHECK(config.max_new_speak_tokens_per_chunk == 33);
  CHECK(config.sampling.temperature == 0);
  CHECK(config.sampling.top_k == 7);
  CHECK(config.sampling.top_p == 0.5);
  CHECK(config.sampling.greedy);
  CHECK(config.sampling.repetition_penalty == 1.5);
  CHECK(config.sampling.repetition_window == 64);
  CHECK(config.listen_prob_scale == 0.25);
  CHECK(config.listen_top_k == 4);
  CHECK(config.tts_temperature == 1.25);
  CHECK_FALSE(config.generate_audio);
  CHECK(config.window == window_mode::context);
  CHECK(config.window_high_tokens == 900);
  CHECK(config.window_low_tokens == 800);
  CHECK(out->seed == 42u);
  CHECK(out->unit_responses);
  CHECK(out->listen_at_turn_end);
  CHECK(out->transcribe_input);
  CHECK(out->max_slice_nums == 3);
}

TEST_CASE("session.init: ranges of config") {
  struct row {
    std::string key;
    std::vector<std::string> good;
    std::vector<std::string> bad;
  };
  const std::vector<row> rows{
      {"length_penalty", {"0.1", "5", "5.0", "1e0"}, {"0.09", "5.01", "-1", "\"1\"", "true", "[]", "1e999"}},
      {"force_listen_count",
       {"0", "100", "3.0"},
       {"-1", "101", "1.5", "\"3\"", "false", "1e999", "99999999999999999999"}},
      {"max_new_speak_tokens_per_chunk", {"1", "100"}, {"0", "101", "{}"}},
      {"temperature", {"0", "2", "0.0"}, {"-0.1", "2.1", "\"\""}},
      {"top_k", {"0", "100000", "2147483647"}, {"-1", "0.5", "2147483648"}},
      {"top_p", {"0", "1", "0.95"}, {"-0.01", "1.01"}},
      {"decode_mode", {"\"sampling\"", "\"greedy\""}, {"\"beam\"", "\"\"", "\"Greedy\"", "1"}},
      {"text_repetition_penalty", {"1", "100"}, {"0.99", "-1"}},
      {"text_repetition_window_size", {"1", "100000"}, {"0", "-5", "1.5"}},
      {"listen_prob_scale", {"0", "1000000"}, {"-0.001", "\"1\""}},
      {"listen_top_k", {"0", "5"}, {"-1", "\"x\""}},
      {"tts_temperature", {"0", "2"}, {"2.01", "-1"}},
      {"generate_audio", {"true", "false"}, {"1", "0", "\"true\"", "[]"}},
      {"unit_responses", {"true", "false"}, {"1", "\"true\""}},
      {"listen_at_turn_end", {"true", "false"}, {"0", "{}"}},
      {"transcribe_input", {"true", "false"}, {"0", "\"yes\""}},
      {"sliding_window_mode", {"\"off\"", "\"basic\"", "\"context\""}, {"\"on\"", "0", "true"}},
      {"basic_window_high_tokens", {"1", "8000"}, {"0", "\"x\""}},
      {"basic_window_low_tokens", {"1", "8000"}, {"0", "1.5"}},
      {"seed", {"0", "-1", "18446744073709551615", "7.0"}, {"1.5", "\"7\"", "18446744073709551616", "true"}},
      {"chunk_ms", {"1000", "1000.0"}, {"999", "2000", "\"1000\""}},
      {"sample_rate", {"16000"}, {"24000", "0", "\"16000\""}},
      {"max_slice_nums", {"1", "9"}, {"0", "10", "\"1\"", "1.5"}},
  };
  for (auto& [key, good, bad] : rows) {
    CAPTURE(key);
    auto with = [&](const std::string& value, const std::string& config) {
      return init_text(R"({"type":"session.init","payload":{")" + config + R"(":{")" + key + "\":" + value + "}}}");
    };
    for (auto& value : good) {
      CAPTURE(value);
      CHECK(refusal(with(value, "config")) == "accepted");
      CHECK(refusal(with(value, "duplex")) == "accepted");
    }
    CHECK(refusal(with("null", "config")) == "accepted");
    for (auto& value : bad) {
      CAPTURE(value);
      auto decoded = with(value, "config");
      CHECK_THAT(refusal(decoded), Catch::StartsWith("invalid_payload payload.config." + key + ": "));
    }
  }
  CHECK(refusal(init({{"config", {{"temperature", 3}}}})) ==
        "invalid_payload payload.config.temperature: 3 is outside 0..2");
  CHECK(refusal(init({{"config", {{"top_k", -1}}}})) == "invalid_payload payload.config.top_k: -1 is outside 0..");
  CHECK(refusal(init({{"config", {{"top_k", 0.5}}}})) == "invalid_payload payload.config.top_k: not an integer");
  CHECK(refusal(init({{"config", {{"basic_window_high_tokens", 10}, {"basic_window_low_tokens", 11}}}})) ==
        "invalid_payload payload.config.basic_window_low_tokens: above basic_window_high_tokens");
}

TEST_CASE("session.init: config has an alias, and the canonical name wins") {
  CHECK(init({{"duplex", {{"top_k", 5}}}})->config.sampling.top_k == 5);
  CHECK(init({{"duplex", {{"top_k", 5}}}, {"config", {{"top_k", 6}}}})->config.sampling.top_k == 6);
  CHECK(init({{"duplex", {{"top_k", 5}}}, {"config", nullptr}})->config.sampling.top_k == 5);
  CHECK(init({{"duplex", "junk"}, {"config", {{"top_k", 6}}}})->config.sampling.top_k == 6);
  CHECK(refusal(init({{"config", "x"}})) == "invalid_payload payload.config: not an object");
  CHECK(refusal(init({{"duplex", 1}})) == "invalid_payload payload.duplex: not an object");
}

TEST_CASE("session.init: max_slice_nums in both places") {
  CHECK(init({{"max_slice_nums", 9}})->max_slice_nums == 9);
  CHECK(init({{"max_slice_nums", 2}, {"config", {{"max_slice_nums", 3}}}})->max_slice_nums == 2);
  for (dom bad : {dom(0), dom(10), dom("1"), dom(1.5)}) CHECK_FALSE(init({{"max_slice_nums", bad}}));
}

TEST_CASE("session.init: the last of two equal keys counts, also if the first is wrong") {
  CHECK(
      init_text(
          R"({"type":"session.init","payload":{"system_prompt":5,"system_prompt":"p","config":{"top_k":-1,"top_k":4}}})")
          ->config.sampling.top_k == 4);
}

TEST_CASE("session.init: voices, by each of their names") {
  auto voice = test::sound(8000);
  auto other = test::sound(9000);
  for (auto& [payload, name] :
       std::vector<std::pair<dom, std::string>>{{{{"voice", {{"ref_audio_base64", voice}}}}, "canonical"},
                                                {{{"voice", {{"ref_audio", voice}}}}, "alias"},
                                                {{{"ref_audio_base64", voice}}, "in the payload"},
                                                {{{"ref_audio", voice}}, "alias in the payload"}}) {
    CAPTURE(name);
    auto out = init(payload);
    REQUIRE(out);
    REQUIRE(out->voice);
    CHECK(out->voice->size() == 8000);
    CHECK(out->tts_voice == out->voice); // the vocoder falls back to the LLM's voice
  }
  for (auto& payload : std::vector<dom>{{{"voice", {{"tts_ref_audio_base64", other}, {"ref_audio_base64", voice}}}},
                                        {{"voice", {{"tts_ref_audio", other}, {"ref_audio", voice}}}},
                                        {{"tts_ref_audio_base64", other}, {"ref_audio_base64", voice}},
                                        {{"tts_ref_audio", other}, {"ref_audio", voice}}}) {
    auto out = init(payload);
    REQUIRE(out);
    CHECK(out->voice->size() == 8000);
    CHECK(out->tts_voice->size() == 9000);
  }
  auto only_vocoder = init({{"tts_ref_audio", other}});
  CHECK_FALSE(only_vocoder->voice);
  CHECK(only_vocoder->tts_voice->size() == 9000);
  auto twice = init({{"voice", {{"ref_audio_base64", voice}, {"tts_ref_audio_base64", voice}}}});
  CHECK(twice->voice == twice->tts_voice);
  auto canonical_wins =
      init({{"voice", {{"ref_audio_base64", voice}, {"ref_audio", other}}}, {"ref_audio_base64", other}});
  CHECK(canonical_wins->voice->size() == 8000);
  CHECK(init({{"voice", {{"ref_audio_base64", nullptr}}}, {"ref_audio", other}})->voice->size() == 9000);
  CHECK(init({{"voice", nullptr}}));
  CHECK(init({{"voice", {{"ref_audio_base64", "data:audio/wav;base64," + test::wav_voice()}}}})->voice->size() == 8000);
}

TEST_CASE("session.init: voices that are none") {
  CHECK(refusal(init({{"voice", "alloy"}})) == "invalid_payload payload.voice: not an object");
  CHECK(refusal(init({{"voice", {{"ref_audio_base64", 5}}}})) ==
        "invalid_payload payload.voice.ref_audio_base64: not a string");
  CHECK(refusal(init({{"voice", {{"ref_audio_base64", ""}}}})) ==
        "invalid_payload payload.voice.ref_audio_base64: 0 samples, outside 4000..960000");
  CHECK(refusal(init({{"voice", {{"tts_ref_audio", "!"}}}})) ==
        "invalid_payload payload.voice.tts_ref_audio: not base64 at character 0");
  CHECK(refusal(init({{"ref_audio", test::sound(3999)}})) ==
        "invalid_payload payload.ref_audio: 3999 samples, outside 4000..960000");
}

TEST_CASE("session.update: instructions are required") {
  auto out = update({{"instructions", "Be kind."}});
  REQUIRE(out);
  CHECK(out->spoken == dialect::legacy);
  CHECK(out->system_prompt == "Be kind.");
  CHECK(out->max_slice_nums == 1);
  CHECK(out->config.sampling.length_penalty == 1.1);
  CHECK_FALSE(out->voice);

  auto bare = peek(R"({"type":"session.update"})");
  CHECK(refusal(decode_session_update(*bare, mode::audio)) == "missing_field session: required");
  CHECK(refusal(update(nullptr)) == "invalid_payload session: not an object");
  CHECK(refusal(update("x")) == "invalid_payload session: not an object");
  CHECK(refusal(update(dom::object())) == "missing_field session.instructions: required");
  CHECK(refusal(update({{"instructions", ""}})) == "invalid_payload session.instructions: empty");
  CHECK(refusal(update({{"instructions", nullptr}})) == "invalid_payload session.instructions: not a string");
  CHECK(refusal(update({{"instructions", std::string(32'769, 'x')}})) ==
        "invalid_payload session.instructions: 32769 bytes, at most 32768 are allowed");
  CHECK(update({{"instructions", std::string(32'768, 'x')}}));
}

TEST_CASE("session.update: slices in video, ignored in audio; config and foreign fields ignored") {
  CHECK(update({{"instructions", "x"}, {"max_slice_nums", 9}})->max_slice_nums == 9);
  CHECK(refusal(update({{"instructions", "x"}, {"max_slice_nums", 10}})) ==
        "invalid_payload session.max_slice_nums: 10 is outside 1..9");
  CHECK(update({{"instructions", "x"}, {"max_slice_nums", 10}}, mode::audio)->max_slice_nums == 1);
  CHECK(update({{"instructions", "x"}, {"config", {{"top_k", -5}}}, {"voice", "alloy"}, {"modalities", {"text"}}}));
}

TEST_CASE("session.update: voices") {
  auto out = update({{"instructions", "x"}, {"ref_audio", test::wav_voice()}, {"tts_ref_audio", test::sound(9000)}});
  REQUIRE(out);
  CHECK(out->voice->size() == 8000);
  CHECK(out->tts_voice->size() == 9000);
  out = update({{"instructions", "x"}, {"ref_audio_base64", test::sound(4000)}});
  CHECK(out->voice->size() == 4000);
  CHECK(out->tts_voice == out->voice);
  CHECK(update({{"instructions", "x"}, {"ref_audio", nullptr}}));
  CHECK_FALSE(update({{"instructions", "x"}, {"ref_audio", test::sound(10)}}));
}
