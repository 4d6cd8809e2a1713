#include "protocol/codec/client_codec.hpp"
#include "protocol/media/wav.hpp"
#include "protocol/openai/completions/completion_turn.hpp"
#include "protocol/openai/completions/request.hpp"
#include "protocol/openai/completions/spoken_id.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <string>

using namespace parley::protocol;
using namespace parley::protocol::test;

namespace {

openai_request read(const std::string& body) {
  auto request = read_openai_request(body);
  if (!request) FAIL(request.error().message);
  return std::move(*request);
}

/// What the session is asked, or what is wrong with that.
result<chat_append_event> turn_of(const std::string& body, int choice = 0) {
  const completion_turn turn(read(body).prompt, choice);
  return turn.make().and_then([](chat_append_event&& made) { return checked(std::move(made)); });
}

chat_append_event append_of(const std::string& body) {
  auto event = turn_of(body);
  if (!event) FAIL(event.error().message);
  return std::move(*event);
}

std::string refusal_of(const std::string& body) {
  const auto request = read_openai_request(body);
  REQUIRE_FALSE(request);
  CHECK(request.error().code == error_code::invalid_payload);
  return request.error().message;
}

std::string with(const std::string& more) {
  return R"({"messages":[{"role":"user","content":"hi"}],)" + more + "}";
}

} // namespace

TEST_CASE("messages and numbers become a chat turn") {
  const auto turn = append_of(R"({"model":"m","messages":[{"role":"developer","content":"be \"brief\""},)"
                              R"({"role":"user","content":[{"type":"text","text":"a\nb"}]},)"
                              R"({"role":"assistant","content":"c"},{"role":"user","content":"d"}],)"
                              R"("max_tokens":9,"temperature":0.25,"top_p":0.5,"seed":7,"frequency_penalty":1})");
  REQUIRE(turn.messages.size() == 4);
  CHECK(turn.messages[0].from == role::system);
  CHECK(std::get<text_item>(turn.messages[0].content[0]).text == "be \"brief\"");
  CHECK(std::get<text_item>(turn.messages[1].content[0]).text == "a\nb");
  CHECK(turn.messages[2].from == role::assistant);
  CHECK(turn.max_new_tokens == 9);
  CHECK(turn.temperature == 0.25);
  CHECK(turn.top_p == 0.5);
  CHECK(turn.seed == 7);
  CHECK_FALSE(turn.streaming);
  CHECK_FALSE(turn.tts);
  CHECK_FALSE(turn.max_slice_nums);
}

TEST_CASE("what the answer shall be") {
  CHECK(read(with(R"("model":"any name")")).model == "any name");
  CHECK(append_of(with(R"("n":1)")).max_new_tokens == 1024);
  CHECK(append_of(with(R"("max_tokens":5,"max_completion_tokens":100000)")).max_new_tokens == 4096);
  CHECK(append_of(with(R"("stream":true)")).streaming);
  CHECK(read(with(R"("stream":true,"stream_options":{"include_usage":true})")).include_usage);
  CHECK(read(with(R"("modalities":["text"],"audio":{"format":"mp3"})")).sound == sound_format::none);
  CHECK(read(with(R"("modalities":["text","audio"])")).sound == sound_format::wav);
  const std::string streamed = R"("stream":true,"modalities":["text","audio"],"audio":{"format":"pcm16","voice":"x"})";
  CHECK(read(with(streamed)).sound == sound_format::pcm16);
  CHECK(append_of(with(streamed)).tts);
}

TEST_CASE("pictures and sound are those of the data URL and of the file") {
  const auto picture = jpeg_file(8, 8);
  const auto sound = write_wav(std::vector<float>(1600, 0.5f), 16'000);
  const auto escaped = [](std::string base64) {
    for (auto at = base64.find('/'); at != base64.npos; at = base64.find('/', at + 2)) base64.insert(at, "\\");
    return base64;
  };
  const std::string url =
      R"({"type":"image_url","image_url":{"url":"data:image\/jpeg;base64,)" + escaped(to_base64(picture)) + R"("}})";
  const auto turn =
      append_of(R"({"messages":[{"role":"user","content":[)" + url +
                R"(,{"type":"input_audio","input_audio":{"data":")" + to_base64(sound) + R"(","format":"wav"}}]}]})");
  const auto& parts = turn.messages.at(0).content;
  REQUIRE(parts.size() == 2);
  CHECK(*std::get<image_item>(parts[0]).file == picture);
  REQUIRE(std::get<audio_item>(parts[1]).samples->size() == 1600);
  CHECK(std::get<audio_item>(parts[1]).samples->at(800) == Approx(0.5f).margin(1e-4));
}

TEST_CASE("little detail is one slice") {
  const auto slices = [](const std::string& first, const std::string& second) {
    const auto part = [](const std::string& detail) {
      return R"({"type":"image_url","image_url":{"url":"data:image/jpeg;base64,)" + jpeg(8, 8) + R"(","detail":")" +
             detail + R"("}})";
    };
    return append_of(R"({"messages":[{"role":"user","content":[)" + part(first) + "," + part(second) + "]}]}")
        .max_slice_nums;
  };
  CHECK(slices("low", "low") == 1);
  CHECK_FALSE(slices("low", "high"));
  CHECK_FALSE(slices("auto", "auto"));
}

TEST_CASE("stop strings reach the session") {
  CHECK(append_of(with(R"("stop":"x\n")")).stop == std::vector<std::string>{"x\n"});
  CHECK(append_of(with(R"("stop":["a","b"])")).stop.size() == 2);
  CHECK(append_of(with(R"("stop":[])")).stop.empty());
}

TEST_CASE("how likely the tokens were is asked of the session") {
  CHECK_FALSE(append_of(with(R"("model":"m")")).scored);
  CHECK_FALSE(append_of(with(R"("logprobs":false)")).scored);
  CHECK(append_of(with(R"("logprobs":true)")).scored == 0);
  CHECK(append_of(with(R"("logprobs":true,"top_logprobs":20)")).scored == 20);
  CHECK(read(with(R"("logprobs":true)")).scored);
  CHECK(refusal_of(with(R"("logprobs":true,"top_logprobs":21)")).starts_with("top_logprobs:"));
  CHECK(refusal_of(with(R"("top_logprobs":2)")).starts_with("top_logprobs:"));
  CHECK(refusal_of(with(R"("logprobs":1)")).starts_with("logprobs:"));
}

TEST_CASE("what is not there is refused by name") {
  CHECK(refusal_of("").find("JSON") != std::string::npos);
  CHECK(refusal_of("[]").find("JSON") != std::string::npos);
  CHECK(refusal_of(with(R"("n":0)")).starts_with("n:"));
  CHECK(refusal_of(with(R"("n":9)")).starts_with("n:"));
  CHECK(refusal_of(with(R"("functions":[{}])")).starts_with("functions:"));
  CHECK(refusal_of(with(R"("modalities":["video"])")).starts_with("modalities:"));
  CHECK(refusal_of(with(R"("modalities":["audio"],"audio":{"format":"opus"})")).starts_with("audio.format:"));
  CHECK(refusal_of(with(R"("stream":true,"modalities":["audio"],"audio":{"format":"wav"})"))
            .starts_with("audio.format:"));
  CHECK(refusal_of(R"({"messages":{}})").starts_with("messages:"));
  CHECK(refusal_of(R"({"messages":[{"role":"function","content":"x"}]})").starts_with("messages[0].role:"));
  CHECK(refusal_of(R"({"messages":[{"role":"user","content":1}]})").starts_with("messages[0].content:"));
  const auto part = [](const std::string& what) {
    return R"({"messages":[{"role":"user","content":[)" + what + "]}]}";
  };
  CHECK(refusal_of(part(R"({"type":"file"})")).starts_with("messages[0].content[0].type:"));
  CHECK(refusal_of(part(R"({"type":"image_url","image_url":{"url":"https://x"}})")).find("data URL") !=
        std::string::npos);
  CHECK(refusal_of(part(R"({"type":"input_audio","input_audio":{"data":"x","format":"m4a"}})")).find("wav, mp3") !=
        std::string::npos);
  CHECK(refusal_of(with(R"("temperature":9)")).starts_with("temperature:"));
}

TEST_CASE("tools, their calls and results reach the session") {
  const auto turn = append_of(
      R"({"messages":[{"role":"user","content":"hi"},)"
      R"({"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},)"
      R"({"role":"tool","tool_call_id":"c1","content":"done"}],)"
      R"("tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],)"
      R"("tool_choice":{"type":"function","function":{"name":"f"}}})");
  REQUIRE(turn.messages.size() == 3);
  REQUIRE(turn.messages[1].calls.size() == 1);
  CHECK(turn.messages[1].calls[0].name == "f");
  CHECK(turn.messages[1].content.empty());
  CHECK(turn.messages[2].from == role::tool);
  REQUIRE(turn.tools.size() == 1);
  CHECK(turn.tool_required);
  CHECK(turn.tool_name == "f");
  CHECK(append_of(with(R"("tools":[],"tool_choice":"auto")")).tools.empty());
}

TEST_CASE("sound may be of any kind that is read: its bytes say which, not its name") {
  const auto sound = to_base64(write_wav(std::vector<float>(1600, 0.5f), 16'000));
  for (const std::string format : {"wav", "mp3", "flac", "ogg", "opus", "aiff", "w64", "rf64"}) {
    const auto turn =
        append_of(R"({"messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":")" + sound +
                  R"(","format":")" + format + R"("}}]}]})");
    CHECK(std::get<audio_item>(turn.messages.at(0).content.at(0)).samples->size() == 1600);
  }
}

TEST_CASE("a format reaches the session") {
  CHECK(append_of(with(R"("response_format":{"type":"text"})")).answer_schema.empty());
  CHECK(append_of(with(R"("response_format":{"type":"json_object"})")).answer_schema == R"({"type": "object"})");
  CHECK(append_of(
            with(R"("response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}})"))
            .answer_schema == R"({"type": "object"})");
}

TEST_CASE("a field that has to be there is missing") {
  const auto request = read_openai_request("{}");
  REQUIRE_FALSE(request);
  CHECK(request.error().code == error_code::missing_field);
}

TEST_CASE("a body that is not UTF-8 is refused: it would stand in recordings") {
  const auto said = [](const std::string& what) {
    return R"({"messages":[{"role":"user","content":")" + what + R"("}]})";
  };
  CHECK(std::get<text_item>(append_of(said("caf\xC3\xA9 \xE4\xBD\xA0\xF0\x9F\x98\x80")).messages[0].content[0]).text ==
        "caf\xC3\xA9 \xE4\xBD\xA0\xF0\x9F\x98\x80");
  for (const char* bad :
       {"caf\xE9", "\xFF\xFE", "\xED\xA0\x80", "\xC0\xAF", "0123456\xF4\x90\x80\x80", "01234567\xC3"}) {
    CAPTURE(bad);
    CHECK(refusal_of(said(bad)) == "the body is not UTF-8");
  }
}

namespace {

/// The words of the assistant's message in a conversation.
std::string said_by(const std::string& message) {
  const auto turn =
      append_of(R"({"messages":[{"role":"user","content":"hi"},)" + message + R"(,{"role":"user","content":"so"}]})");
  REQUIRE(turn.messages.size() == 3);
  CHECK(turn.messages[1].from == role::assistant);
  std::string out;
  for (const auto& part : turn.messages[1].content) out += std::get<text_item>(part).text;
  return out;
}

} // namespace

TEST_CASE("what an assistant said can be sent back as it came") {
  CHECK(
      said_by(
          R"({"role":"assistant","content":"a","refusal":null,"annotations":[],"audio":null,"function_call":null})") ==
      "a");
  CHECK(said_by(R"({"role":"assistant","content":"a","reasoning_content":"hm","reasoning":"hm","tool_calls":null})") ==
        "a");
  CHECK(said_by(R"({"role":"assistant","content":null,"refusal":"No \"way\"."})") == "No \"way\".");
  CHECK(said_by(R"({"role":"assistant","content":[{"type":"refusal","refusal":"No."}]})") == "No.");
  CHECK(said_by(R"({"role":"assistant","content":[{"type":"text","text":"a"}],"tool_calls":[]})") == "a");
  CHECK(said_by(R"({"role":"assistant","content":null})").empty());
  CHECK(said_by(R"({"role":"assistant","content":[]})").empty());
  CHECK(
      said_by(
          R"({"role":"assistant","content":null,"audio":{"id":"x","data":"AAAA","expires_at":1,"transcript":"é\n"}})") ==
      "é\n");
  CHECK(said_by(R"({"role":"assistant","content":"","audio":{"id":"x","transcript":"b"}})") == "b");
}

TEST_CASE("a spoken answer's id stands for its words") {
  for (const std::string words : {"", "a", "ab", "abc", "My name is Parley.", "\xE4\xBD\xA0\xE5\xA5\xBD?>~\xC3\xBF"}) {
    const auto id = spoken_id("abc", words);
    CHECK(id.find_first_of("+/=") == id.npos);
    CHECK(words_of_spoken_id(id) == words);
    CHECK(words_of_spoken_id("audio_abc" + id) == words); // the ids of a stream, joined
    CHECK(said_by(R"({"role":"assistant","audio":{"id":")" + id + "\"}}") == words);
  }
  for (const auto* wrong : {"", "audio_abc", "audio_abc.a", "audio_abc.!", "audio_abc.YQ==", "abc.YQ", "audio_abc._w"})
    CHECK(words_of_spoken_id(wrong) == std::nullopt);
  CHECK(refusal_of(R"({"messages":[{"role":"assistant","audio":{"id":"audio_1"}},{"role":"user","content":"hi"}]})") ==
        "messages[0].audio.id: no id of an answer of this server; send its transcript");
  CHECK(refusal_of(
            R"({"messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}]})") ==
        "messages[0].function_call: not supported by this server: use tool_calls");
  CHECK(read_openai_request(R"({"messages":[{"role":"assistant"}]})").error().message ==
        "messages[0].content: required");
}

TEST_CASE("results find their calls by their ids") {
  const auto turn = append_of(
      R"({"messages":[{"role":"user","content":"Weather?"},{"role":"assistant","content":null,"tool_calls":[)"
      R"({"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},)"
      R"({"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},)"
      R"({"role":"tool","tool_call_id":"b","content":"rain"},{"role":"tool","tool_call_id":"a","content":"sun"}]})");
  REQUIRE(turn.messages.size() == 4);
  CHECK(std::get<text_item>(turn.messages[2].content[0]).text == "sun");
  CHECK(std::get<text_item>(turn.messages[3].content[0]).text == "rain");
}

TEST_CASE("the name of a model, which every chunk repeats, is short") {
  const auto named = [](const std::string& model) {
    return read_openai_request(R"({"messages":[{"role":"user","content":"hi"}],"model":")" + model + "\"}");
  };
  std::string escaped;
  for (int i = 0; i < 256; ++i) escaped += "\\u0061";
  for (const auto& model : {std::string(256, 'a'), escaped}) {
    const auto read = named(model);
    REQUIRE(read);
    CHECK(read->model == std::string(256, 'a'));
  }
  for (const auto& model : {std::string(257, 'a'), escaped + "a", std::string(1u << 20, 'a')}) {
    const auto read = named(model);
    REQUIRE_FALSE(read);
    CHECK(read.error().message == "model: more than 256 bytes");
  }
}

TEST_CASE("lengths and modalities as OpenAI's other APIs spell them") {
  CHECK(append_of(with(R"("max_output_tokens":7)")).max_new_tokens == 7);
  CHECK(append_of(with(R"("output_modalities":["text","audio"])")).tts);
  CHECK_FALSE(append_of(with(R"("modalities":["text"],"output_modalities":["audio"])")).tts);
}
