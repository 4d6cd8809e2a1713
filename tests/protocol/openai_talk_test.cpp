#include "protocol/codec/server_codec.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/wav.hpp"
#include "protocol/openai/completions/spoken_id.hpp"
#include "protocol/openai/completions/talk.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace parley::protocol;
using nlohmann::json;

namespace {

openai_talk talk_for(const std::string& more = "") {
  auto request = read_openai_request(R"({"model":"m","messages":[{"role":"user","content":"hi"}])" + more + "}");
  REQUIRE(request);
  return {std::move(*request), 1'700'000'000};
}

/// What a talk wants, taken apart.
struct step {
  bool opens = false;
  std::vector<client_event> said;
  std::vector<chat_append_event> asked;
  std::string to_client;
  bool over = false;
  std::optional<openai_fault> fault;
  bool drops = false;
};

step step_of(openai_talk::effects effects) {
  step out;
  for (auto& each : effects) {
    if (std::holds_alternative<guest::open_session>(each)) out.opens = true;
    if (std::holds_alternative<guest::drop_session>(each)) out.drops = true;
    if (auto* const told = std::get_if<guest::to_session>(&each)) out.said.push_back(std::move(told->event));
    if (auto* const turn = std::get_if<guest::turn_to_session>(&each)) out.asked.push_back(turn->turn->make().value());
    if (auto* const reply = std::get_if<openai_reply>(&each)) {
      out.to_client += reply->text;
      out.over = reply->over;
      out.fault = reply->fault;
    }
  }
  return out;
}

step hear(openai_talk& talk, const server_event& event) {
  return step_of(talk.on_event(event));
}

bool says_goodbye(const step& of) {
  return of.drops && of.said.size() == 1 && std::get<close_event>(of.said[0]).reason == "user_stop";
}

server_event created() {
  session_created out;
  out.session_id = "sess_abc";
  return out;
}

server_event delta(const std::string& text, pcm audio = nullptr) {
  output_delta out;
  out.kind = audio ? output_kind::audio : output_kind::text;
  out.text = text;
  out.audio = std::move(audio);
  return out;
}

server_event done(const std::string& text, const std::string& reason = "turn_end", pcm audio = nullptr) {
  response_done out;
  out.text = text;
  out.reason = reason;
  out.audio = std::move(audio);
  usage used;
  used.input_text = 5;
  used.input_audio = 10;
  used.output_text = 2;
  used.output_audio = 25;
  out.used = used;
  return out;
}

/// The data of a stream's events; "[DONE]" becomes null.
std::vector<json> chunks_of(std::string_view events) {
  std::vector<json> out;
  for (std::size_t at = 0; at < events.size();) {
    const auto end = events.find("\n\n", at);
    REQUIRE(end != std::string_view::npos);
    REQUIRE(events.substr(at, 6) == "data: ");
    const auto data = events.substr(at + 6, end - at - 6);
    out.push_back(data == "[DONE]" ? json() : json::parse(data));
    at = end + 2;
  }
  return out;
}

/// Goes on to `session.created` and the turn that it starts.
void begin(openai_talk& talk) {
  const auto begun = step_of(talk.begin());
  CHECK(begun.opens);
  REQUIRE(begun.said.size() == 1);
  CHECK(std::holds_alternative<init_event>(begun.said[0]));
  CHECK(hear(talk, session_queue_done{}).asked.empty());
  CHECK(hear(talk, created()).asked.size() == 1);
}

} // namespace

TEST_CASE("a whole answer") {
  auto talk = talk_for();
  begin(talk);
  const auto got = hear(talk, done("hello \"you\"", "length"));
  CHECK(got.over);
  CHECK_FALSE(got.fault);
  CHECK(says_goodbye(got));
  const auto body = json::parse(got.to_client);
  CHECK(body["id"] == "chatcmpl-abc");
  CHECK(body["object"] == "chat.completion");
  CHECK(body["created"] == 1'700'000'000);
  CHECK(body["model"] == "m");
  CHECK(body["choices"][0]["message"] ==
        json{{"role", "assistant"}, {"refusal", nullptr}, {"content", "hello \"you\""}});
  CHECK(body["choices"][0]["finish_reason"] == "length");
  CHECK(body["usage"]["prompt_tokens"] == 15);
  CHECK(body["usage"]["completion_tokens"] == 27);
  CHECK(body["usage"]["total_tokens"] == 42);
  CHECK(body["usage"]["prompt_tokens_details"]["audio_tokens"] == 10);
  CHECK(body["usage"]["completion_tokens_details"]["audio_tokens"] == 25);
  CHECK(hear(talk, server_event(session_closed{"user_stop", {}})).to_client.empty());
}

TEST_CASE("several answers are turns of one session") {
  auto talk = talk_for(R"(,"n":3,"seed":9223372036854775806,"stop":"x")");
  talk.begin();
  const auto seed = [](const step& of) {
    REQUIRE(of.asked.size() == 1);
    CHECK(of.asked[0].stop == std::vector<std::string>{"x"});
    return of.asked[0].seed;
  };
  CHECK(seed(hear(talk, created())) == 9223372036854775806);
  auto got = hear(talk, done("one"));
  CHECK_FALSE(got.over);
  CHECK(got.to_client.empty());
  CHECK(seed(got) == 9223372036854775807);
  got = hear(talk, done("two", "length"));
  CHECK(seed(got) == 0);
  got = hear(talk, done("three"));
  CHECK(got.over);
  CHECK(says_goodbye(got));
  const auto body = json::parse(got.to_client);
  REQUIRE(body["choices"].size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(body["choices"][i]["index"] == i);
  CHECK(body["choices"][1]["message"]["content"] == "two");
  CHECK(body["choices"][1]["finish_reason"] == "length");
  CHECK(body["usage"]["prompt_tokens"] == 15);
  CHECK(body["usage"]["completion_tokens"] == 81);
  CHECK(body["usage"]["total_tokens"] == 96);
}

TEST_CASE("several answers in pieces carry their index") {
  auto talk = talk_for(R"(,"n":2,"stream":true,"stream_options":{"include_usage":true})");
  begin(talk);
  hear(talk, delta("he"));
  auto got = hear(talk, done("he"));
  CHECK_FALSE(got.over);
  CHECK(got.asked.size() == 1);
  REQUIRE(chunks_of(got.to_client).size() == 1);
  CHECK(chunks_of(got.to_client)[0]["choices"][0]["finish_reason"] == "stop");
  const auto second = chunks_of(hear(talk, delta("ho")).to_client);
  CHECK(second[0]["choices"][0]["index"] == 1);
  CHECK(second[0]["choices"][0]["delta"] == json{{"role", "assistant"}, {"content", "ho"}});
  got = hear(talk, done("ho"));
  CHECK(got.over);
  const auto last = chunks_of(got.to_client);
  REQUIRE(last.size() == 3);
  CHECK(last[0]["choices"][0]["index"] == 1);
  CHECK(last[1]["usage"]["total_tokens"] == 15 + 2 * 27);
}

TEST_CASE("an error ends all answers") {
  auto talk = talk_for(R"(,"n":2)");
  begin(talk);
  hear(talk, done("one"));
  const auto got = hear(talk, server_event(error_event{error_code::inference_error, "why"}));
  CHECK(got.over);
  CHECK(got.fault);
  CHECK(got.to_client.empty());
}

TEST_CASE("an answer in pieces") {
  auto talk = talk_for(R"(,"stream":true,"stream_options":{"include_usage":true})");
  begin(talk);
  const auto first = chunks_of(hear(talk, delta("he")).to_client);
  REQUIRE(first.size() == 1);
  CHECK(first[0]["object"] == "chat.completion.chunk");
  CHECK(first[0]["choices"][0]["delta"] == json{{"role", "assistant"}, {"content", "he"}});
  CHECK(first[0]["choices"][0]["finish_reason"].is_null());
  CHECK(chunks_of(hear(talk, delta("llo")).to_client)[0]["choices"][0]["delta"] == json{{"content", "llo"}});
  const auto last = hear(talk, done("hello"));
  CHECK(last.over);
  const auto end = chunks_of(last.to_client);
  REQUIRE(end.size() == 3);
  CHECK(end[0]["choices"][0]["delta"] == json::object());
  CHECK(end[0]["choices"][0]["finish_reason"] == "stop");
  CHECK(end[1]["choices"] == json::array());
  CHECK(end[1]["usage"]["total_tokens"] == 42);
  CHECK(end[2].is_null());
}

TEST_CASE("an empty answer in pieces still names its speaker") {
  auto talk = talk_for(R"(,"stream":true)");
  begin(talk);
  const auto end = chunks_of(hear(talk, done("")).to_client);
  REQUIRE(end.size() == 3);
  CHECK(end[0]["choices"][0]["delta"]["role"] == "assistant");
}

TEST_CASE("how likely the tokens were, whole and in pieces") {
  const std::vector<token_score> scores{{{"he", -0.5}, {{"he", -0.5}, {"ho", -1}}}};
  const json wanted{{"token", "he"}, {"logprob", -0.5}, {"bytes", {104, 101}}};
  auto end = response_done{.response_id = "resp_1",
                           .input_id = "",
                           .text = "he",
                           .audio = nullptr,
                           .reason = "turn_end",
                           .measured = {},
                           .used = {}};
  auto whole = talk_for(R"(,"logprobs":true,"top_logprobs":2)");
  begin(whole);
  end.scores = scores;
  const auto choice = json::parse(hear(whole, server_event(end)).to_client)["choices"][0];
  CHECK(choice["logprobs"]["refusal"].is_null());
  REQUIRE(choice["logprobs"]["content"].size() == 1);
  auto first = choice["logprobs"]["content"][0];
  REQUIRE(first["top_logprobs"].size() == 2);
  CHECK(first["top_logprobs"][0] == wanted);
  CHECK(first["top_logprobs"][1]["token"] == "ho");
  first.erase("top_logprobs");
  CHECK(first == wanted);

  auto none = talk_for(R"(,"logprobs":true)");
  begin(none);
  CHECK(json::parse(hear(none, done("")).to_client)["choices"][0]["logprobs"]["content"] == json::array());

  auto pieces = talk_for(R"(,"logprobs":true,"stream":true)");
  begin(pieces);
  output_delta piece;
  piece.kind = output_kind::text;
  piece.text = "he";
  piece.scores = scores;
  const auto chunks = chunks_of(hear(pieces, server_event(piece)).to_client);
  CHECK(chunks[0]["choices"][0]["logprobs"]["content"][0]["token"] == "he");
  CHECK(chunks_of(hear(pieces, delta("llo")).to_client)[0]["choices"][0]["logprobs"].is_null());
  const auto last = chunks_of(hear(pieces, server_event(end)).to_client);
  CHECK(last[0]["choices"][0]["finish_reason"] == "stop");
  CHECK(last[0]["choices"][0]["logprobs"]["content"].size() == 1); // those of no delta
}

TEST_CASE("calls of functions") {
  const auto call = [](const char* id) {
    return server_event(response_tool_call{"resp_1", "", {id, "f", R"({"a":1})"}});
  };
  const json function{{"name", "f"}, {"arguments", R"({"a":1})"}};
  auto whole = talk_for();
  begin(whole);
  CHECK(hear(whole, call("call_1")).to_client.empty());
  hear(whole, call("call_2"));
  const auto choice = json::parse(hear(whole, done("")).to_client)["choices"][0];
  CHECK(choice["finish_reason"] == "tool_calls");
  CHECK(choice["message"]["content"].is_null());
  REQUIRE(choice["message"]["tool_calls"].size() == 2);
  CHECK(choice["message"]["tool_calls"][1] == json{{"id", "call_2"}, {"type", "function"}, {"function", function}});

  auto pieces = talk_for(R"(,"stream":true)");
  begin(pieces);
  hear(pieces, call("call_1"));
  const auto second = chunks_of(hear(pieces, call("call_2")).to_client);
  REQUIRE(second.size() == 1);
  CHECK(second[0]["choices"][0]["delta"]["tool_calls"][0] ==
        json{{"index", 1}, {"id", "call_2"}, {"type", "function"}, {"function", function}});
  CHECK(chunks_of(hear(pieces, done("")).to_client)[0]["choices"][0]["finish_reason"] == "tool_calls");
}

TEST_CASE("the arguments of a streamed call come as they are made") {
  const auto part = [](const char* id, const char* name, const char* arguments) {
    return server_event(response_tool_call_delta{"resp_1", "", {id, name, arguments}});
  };
  auto talk = talk_for(R"(,"stream":true)");
  begin(talk);
  const auto delta_of = [&](const server_event& event) {
    const auto chunks = chunks_of(hear(talk, event).to_client);
    REQUIRE(chunks.size() == 1);
    return chunks[0]["choices"][0]["delta"];
  };
  CHECK(delta_of(part("call_1", "f", "")) == json{{"role", "assistant"},
                                                  {"content", nullptr},
                                                  {"tool_calls",
                                                   {{{"index", 0},
                                                     {"id", "call_1"},
                                                     {"type", "function"},
                                                     {"function", {{"name", "f"}, {"arguments", ""}}}}}}});
  CHECK(delta_of(part("call_1", "", R"({"a":)")) ==
        json{{"tool_calls", {{{"index", 0}, {"function", {{"arguments", R"({"a":)"}}}}}}});
  delta_of(part("call_1", "", "1}"));
  CHECK(delta_of(part("call_2", "g", "{"))["tool_calls"][0]["index"] == 1);
  CHECK(delta_of(part("call_2", "", "}"))["tool_calls"][0]["index"] == 1);
  for (const char* id : {"call_1", "call_2"})
    CHECK(hear(talk, server_event(response_tool_call{"resp_1", "", {id, "f", "{}"}})).to_client.empty());
  CHECK(chunks_of(hear(talk, done("")).to_client)[0]["choices"][0]["finish_reason"] == "tool_calls");
}

TEST_CASE("sound comes as PCM16") {
  const auto sound = std::make_shared<const std::vector<float>>(std::vector<float>{0.0f, 0.5f, -1.0f});
  SECTION("whole, as a WAV file") {
    auto talk = talk_for(R"(,"modalities":["text","audio"],"audio":{"format":"wav"})");
    begin(talk);
    const auto message = json::parse(hear(talk, done("hi", "turn_end", sound)).to_client)["choices"][0]["message"];
    CHECK(message["content"].is_null());
    CHECK(message["audio"]["transcript"] == "hi");
    CHECK(words_of_spoken_id(message["audio"]["id"].get<std::string>()) == "hi");
    CHECK(message["audio"]["expires_at"] > 1'700'000'000);
    const auto read = read_wav(*base64::decode(message["audio"]["data"].get<std::string>()), {24'000});
    REQUIRE(read);
    REQUIRE(read->size() == 3);
    CHECK((*read)[1] == Approx(0.5).margin(1e-4));
  }
  SECTION("in pieces, bare") {
    auto talk = talk_for(R"(,"stream":true,"modalities":["text","audio"],"audio":{"format":"pcm16"})");
    begin(talk);
    const auto words = chunks_of(hear(talk, delta("hi")).to_client)[0]["choices"][0]["delta"];
    CHECK(words["audio"]["transcript"] == "hi");
    CHECK_FALSE(words.contains("content"));
    const auto heard = chunks_of(hear(talk, delta("", sound)).to_client)[0]["choices"][0]["delta"];
    CHECK(*base64::decode(heard["audio"]["data"].get<std::string>()) == std::string("\x00\x00\x00\x40\x01\x80", 6));
    CHECK_FALSE(heard["audio"].contains("id"));
    hear(talk, delta(" you"));
    const auto end = chunks_of(hear(talk, done("hi you")).to_client)[0]["choices"][0]["delta"]["audio"];
    const auto first = words["audio"]["id"].get<std::string>(), id = end["id"].get<std::string>();
    CHECK(words_of_spoken_id(id) == "hi you");
    CHECK(words_of_spoken_id(first + id) == "hi you"); // as clients join the strings of a stream
    CHECK(end["expires_at"] > 1'700'000'000);
  }
}

TEST_CASE("errors have the status that clients of this API expect") {
  const std::pair<error_code, unsigned> known[] = {
      {error_code::invalid_payload, 400},      {error_code::missing_field, 400},
      {error_code::queue_full, 429},           {error_code::worker_busy, 429},
      {error_code::inference_error, 500},      {error_code::service_unavailable, 503},
      {error_code::worker_connect_failed, 503}};
  for (const auto& [code, status] : known) {
    auto talk = talk_for();
    talk.begin();
    const auto got = hear(talk, error_event{code, "why"});
    REQUIRE(got.fault);
    CHECK(got.over);
    CHECK(got.fault->status == status);
    CHECK(got.fault->code == traits(code).wire);
    const auto body = json::parse(encode_openai_error(*got.fault));
    CHECK(body["error"]["message"] == "why");
    CHECK(body["error"]["param"].is_null());
    CHECK(body["error"]["type"] == (status == 429   ? "rate_limit_error"
                                    : status >= 500 ? "server_error"
                                                    : "invalid_request_error"));
    CHECK(hear(talk, error_event{code, "again"}).fault == std::nullopt);
  }
  auto talk = talk_for();
  begin(talk);
  CHECK(hear(talk, session_closed{"timeout", {}}).fault->status == 503);
  CHECK(step_of(talk.on_closed("x")).fault == std::nullopt);
  auto lost = talk_for();
  begin(lost);
  const auto got = step_of(lost.on_closed("it is lost"));
  CHECK(got.over);
  CHECK(got.drops);
  REQUIRE(got.fault);
  CHECK(got.fault->status == 503);
  CHECK(got.fault->message == "the session ended: it is lost");
}

TEST_CASE("a turn that nobody waits for any more is not made") {
  auto talk = talk_for();
  talk.begin();
  std::weak_ptr<const guest::deferred_turn> asked;
  for (const auto& each : talk.on_event(created()))
    if (const auto* const turn = std::get_if<guest::turn_to_session>(&each)) asked = turn->turn;
  CHECK_FALSE(asked.expired());
  talk.on_closed("it is lost");
  CHECK(asked.expired());
}

TEST_CASE("an error names the field of the request") {
  const auto param = [](const std::string& why) { return openai_fault_of("invalid_payload", why).param; };
  CHECK(param("input.messages[1].tool_calls: An assistant message: without") == "messages[1].tool_calls");
  CHECK(param("input.generation.stop[1]: not a string") == "stop[1]");
  CHECK(param("tools[0].function.name: required") == "tools[0].function.name");
  CHECK(param("messages: empty") == "messages");
  CHECK(param("input.tools[0].function.parameters.$defs.a-b.not: is not followed") ==
        "tools[0].function.parameters.$defs.a-b.not");
  CHECK(openai_fault_of("invalid_payload", "input.tools[0].name: why").message == "tools[0].name: why");
  CHECK(param("no field at all").empty());
  CHECK(param("Two words: more").empty());
  CHECK(openai_fault_of("inference_error", "messages: x").param.empty());
}
