#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/server_codec.hpp"
#include "protocol/delegation/delegations.hpp"
#include "tests/protocol/session_driver.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

// docs/protocol.md 17: what a conversation asks its client to do.
namespace parley::protocol {
namespace {

using namespace std::chrono_literals;
using conversation::role;
using conversation::tool_call;
using test::driver;

constexpr time_point start{1h};
constexpr delegations::moment quiet{};
constexpr delegations::moment model_speaks{true, false};
constexpr delegations::moment user_speaks{false, true};

tool_call call(std::string id, std::string name = "get_time", std::string arguments = "{}") {
  return {std::move(id), std::move(name), std::move(arguments)};
}

} // namespace

TEST_CASE("a result is told with its call, once, and only when nobody speaks") {
  delegations of({4, 30s});
  of.begin(call("a", "get_weather", R"({"city": "Rome"})"), start);
  CHECK(of.tell(quiet, start).empty());
  CHECK(of.resolve("a", "sunny", start + 1s));
  CHECK(of.tell(model_speaks, start + 1s).empty());
  CHECK(of.tell(user_speaks, start + 1s).empty());
  const auto told = of.tell(quiet, start + 2s);
  REQUIRE(told.size() == 2);
  CHECK(told[0].from == role::assistant);
  CHECK(told[0].text == "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Rome\"}}\n</tool_call>");
  CHECK(told[1].from == role::tool);
  CHECK(told[1].text == "sunny");
  CHECK(of.tell(quiet, start + 3s).empty());
}

TEST_CASE("who speaks without end is interrupted by a result after five seconds, and the model never") {
  delegations of({4, 30s});
  of.begin(call("a"), start);
  of.resolve("a", "14:30", start);
  CHECK(of.tell(user_speaks, start + 4999ms).empty());
  CHECK(of.tell(model_speaks, start + 1h).empty());
  CHECK(of.tell(user_speaks, start + 5s).size() == 2);
}

TEST_CASE("results of parallel calls are told one at a time, in the order in which they come") {
  delegations of({4, 30s});
  of.begin(call("a", "f"), start);
  of.begin(call("b", "g"), start);
  CHECK(of.resolve("b", "second", start));
  CHECK(of.resolve("a", "first", start));
  CHECK(of.tell(quiet, start).at(1).text == "second");
  CHECK(of.tell(quiet, start).at(1).text == "first");
}

TEST_CASE("no more calls begin than there may be, and one that is under way is not made twice") {
  delegations of({2, 30s});
  of.begin(call("a", "f", R"({"x": 1})"), start);
  CHECK(of.is_under_way(call("", "f", R"({"x": 1})")));
  CHECK_FALSE(of.is_under_way(call("", "f", R"({"x": 2})")));
  CHECK(of.has_room());
  of.begin(call("b", "g"), start);
  CHECK_FALSE(of.has_room());
  of.resolve("a", "1", start);
  CHECK_FALSE(of.has_room()); // what waits to be told counts
  of.tell(quiet, start);
  CHECK(of.has_room());
  CHECK_FALSE(delegations({0, 30s}).has_room());
}

TEST_CASE("a result has a call that waits for it: not an unknown one, nor a second time, nor after its time") {
  delegations of({4, 30s});
  of.begin(call("a"), start);
  CHECK_FALSE(of.resolve("b", "1", start));
  CHECK(of.resolve("a", "1", start));
  CHECK_FALSE(of.resolve("a", "2", start));
  of.begin(call("c"), start);
  CHECK(of.expire(start + 30s) == std::vector<std::string>{"c"});
  CHECK_FALSE(of.resolve("c", "late", start + 31s));
}

TEST_CASE("what nobody answers in time is told in words, and what is cancelled is not told at all") {
  delegations of({4, 30s});
  of.begin(call("a"), start);
  of.begin(call("b"), start + 10s);
  CHECK(of.next_deadline() == start + 30s);
  CHECK(of.expire(start + 29999ms).empty());
  CHECK(of.cancel("a"));
  CHECK_FALSE(of.cancel("a"));
  CHECK(of.next_deadline() == start + 40s);
  CHECK(of.expire(start + 40s) == std::vector<std::string>{"b"});
  CHECK_FALSE(of.next_deadline());
  CHECK(of.tell(quiet, start + 40s).at(1).text == "There is no result: nobody answered in time.");
  CHECK(of.tell(quiet, start + 41s).empty());
}

// ---- in a session

namespace {

constexpr std::string_view tools =
    R"({"tools":[{"type":"function","function":{"name":"get_time","description":"The time."}}]})";

/// A session of audio with a function, whose user has said something that is being judged as turn 1.
struct asking : driver {
  explicit asking(session_limits limits = {}) : driver({"audio", limits, {true, true, true}}) {
    to_connected();
    frame(test::init_frame(tools));
    created = opened();
    said_created = test::said_event<session_created>(last);
    second(0.25F);
    asked = second(0);
  }
  std::string second(float value) {
    const auto words = frame(test::append_frame(dialect::current, unit_samples, "", value));
    submitted = {};
    for (const auto& each : last)
      if (const auto* unit = std::get_if<submit_unit>(&each)) submitted = unit->context;
    return words;
  }
  std::string listen() { return step(test::listen_report(unit++)); }
  std::string judged(std::vector<tool_call> calls, std::uint64_t number = 1) {
    return heard({number, transcript_result::completed, "", 1, std::move(calls)});
  }
  std::string result(const std::string& id, const std::string& rest = R"("content":"14:30")") {
    return frame(R"({"type":"input.tool_result","tool_call_id":")" + id + "\"," + rest + "}");
  }
  std::string id() { return test::said_event<duplex_call_done>(last).call.id; }

  std::string created, asked;
  session_created said_created;
  std::uint64_t unit = 0;
  std::vector<text_message> submitted; ///< with the unit of the latest second
};

} // namespace

TEST_CASE("a turn that asks for something goes out as a call while the conversation goes on, and its result is told") {
  asking d;
  CHECK(d.said_created.granted == std::vector<std::string>{"tools"});
  CHECK(d.asked == "transcribe:1"); // the first step runs
  const auto& what = std::get<transcribe_turn>(d.last.back()).what;
  REQUIRE(what.offer);
  CHECK(what.offer->tools.at(0).name == "get_time");
  CHECK(d.listen() == "listen[0] unit:1");
  CHECK(d.judged({call("")}) == "call_begin call_delta call_done:get_time({})");
  const auto id = d.id();
  CHECK(id.starts_with("call_"));
  const auto& begin = test::said_event<duplex_call_begin>(d.last);
  CHECK(begin.call_id == id);
  CHECK(begin.end_ms >= 900);
  CHECK(test::said_event<duplex_call_delta>(d.last).text == test::said_event<duplex_call_done>(d.last).text);
  CHECK(d.step(test::text_report(1, "I have no clock.")) == "text[1](I have no clock.)");
  CHECK(d.result(id).empty());
  CHECK(d.second(0) == "unit:2"); // the model speaks: not yet
  CHECK(d.submitted.empty());
  d.step(test::audio_report(2, 100, true, true));
  CHECK(d.second(0) == "unit:3"); // it has not listened since
  CHECK(d.submitted.empty());
  d.step(test::listen_report(3));
  CHECK(d.second(0) == "unit:4");
  REQUIRE(d.submitted.size() == 2);
  CHECK(d.submitted[0].text == "<tool_call>\n{\"name\": \"get_time\", \"arguments\": {}}\n</tool_call>");
  CHECK(d.submitted[1].text == "14:30");
  CHECK(d.result(id) == "error:invalid_payload");
}

TEST_CASE("while the user speaks about something else, a late result waits") {
  asking d;
  d.listen();
  d.judged({call("")});
  const auto id = d.id();
  d.step(test::listen_report(1));
  d.second(0.25F);
  d.step(test::listen_report(2));
  d.result(id);
  d.now += 1s;
  d.second(0.25F);
  CHECK(d.submitted.empty());
  d.step(test::listen_report(3));
  CHECK(d.second(0) == "transcribe:2 unit:4");
  CHECK(d.submitted.size() == 2);
}

TEST_CASE("what is wanted while as many calls as may be are under way is not even judged") {
  session_limits limits;
  limits.delegations = 1;
  asking d(limits);
  d.listen();
  CHECK(d.judged({call(""), call("", "get_time", "{\"a\": 1}")}) == "call_begin call_delta call_done:get_time({})");
  d.step(test::listen_report(1));
  d.second(0.25F);
  d.step(test::listen_report(2));
  CHECK(d.second(0) == "unit:3");
}

TEST_CASE("a client that never answers: the call is taken back, and the model is told in words") {
  asking d;
  d.listen();
  d.judged({call("")});
  const auto id = d.id();
  d.step(test::listen_report(1));
  CHECK(d.wait(29s).empty());
  CHECK(d.wait(1s) == "call_abort:timeout");
  d.second(0);
  CHECK(d.submitted.at(1).text == "There is no result: nobody answered in time.");
  CHECK(d.result(id) == "error:invalid_payload");
}

TEST_CASE("a turn that wants nothing, cannot be judged, or wants what is not offered begins no call") {
  for (const auto& calls : {std::vector<tool_call>{},
                            {call("", "get_time", "{\"a\": ")},
                            {call("", "get_time", "[1]")},
                            {call("", "other")}}) {
    asking d;
    CHECK(d.judged(calls).empty());
  }
  asking d;
  CHECK(d.heard({1, transcript_result::busy}).empty());
  CHECK(d.judged({call("")}).empty()); // judged once
}

TEST_CASE("what judging a turn takes is counted, whatever comes of it") {
  asking d;
  const auto before = d.machine.total();
  d.heard({1, transcript_result::completed, "", 1, {}, {.input_text = 100, .input_audio = 15, .output_text = 1}});
  CHECK(d.machine.total().input_audio == before.input_audio + 15);
  CHECK(d.machine.total().input_text == before.input_text + 100);
}

TEST_CASE("turns that were being judged when the process ended take no place of later ones") {
  asking d;
  d.listen();
  d.second(0.25F);
  CHECK(d.second(0).starts_with("transcribe:2"));
  d.second(0.25F);
  CHECK(d.second(0).empty()); // two wait
  d.taken_up();
  d.second(0.25F);
  CHECK(d.second(0) == "transcribe:3");
}

TEST_CASE("results as upstream's next protocol has them, and what is refused") {
  for (const char* const good :
       {R"("content":"14:30")", R"("content":{"time":"14:30"})", R"("contents":[{"kind":"text","text":"14:30"}])",
        R"("content":null)", R"("content":"")", R"("cancelled":true)"}) {
    asking d;
    d.listen();
    d.judged({call("")});
    CAPTURE(good);
    CHECK(d.result(d.id(), good).empty());
  }
  asking d;
  d.listen();
  d.judged({call("")});
  const auto id = d.id();
  CHECK(d.result(id, R"("other":1)") == "error:missing_field");
  CHECK(d.result(id, R"("contents":[{"kind":"image"}])") == "error:invalid_payload");
  CHECK(d.result(id, R"("contents":[])") == "error:invalid_payload");
  CHECK(d.result(id, "\"content\":\"" + std::string(max_tool_result_bytes + 1, 'x') + "\"") == "error:invalid_payload");
  CHECK(d.result("call_x") == "error:invalid_payload");
  CHECK(d.frame(R"({"type":"input.tool_result","content":"1"})") == "error:missing_field");
  CHECK(d.result(id, "\"content\":\"" + std::string(max_tool_result_bytes, 'x') + "\"").empty());
}

TEST_CASE("a result waits while so much text does that a second could not take both") {
  asking d;
  d.listen();
  d.judged({call("")});
  const auto id = d.id();
  d.step(test::listen_report(1));
  const std::string half(max_context_bytes, 'x');
  const auto note = [&](const std::string& text) {
    return d.frame(R"({"type":"input.append","input":{"context":[{"role":"user","content":")" + text + R"("}]}})");
  };
  d.result(id, "\"content\":\"" + std::string(max_tool_result_bytes, 'r') + "\"");
  CHECK(note(half).empty());
  CHECK(note("more").empty());
  d.second(0);
  CHECK(d.submitted.size() == 2); // what was typed
  CHECK(bytes_of(d.submitted) <= max_waiting_context);
  d.step(test::listen_report(2));
  d.second(0);
  REQUIRE(d.submitted.size() == 2);
  CHECK(d.submitted[1].text.front() == 'r');
}

TEST_CASE("input.standalone is what the user types, as context is") {
  asking d;
  d.listen();
  d.step(test::listen_report(1));
  CHECK(d.frame(R"({"type":"input.standalone","contents":[{"kind":"text","text":"My name is Ada."}]})").empty());
  d.second(0);
  REQUIRE(d.submitted.size() == 1);
  CHECK(d.submitted[0].from == role::user);
  CHECK(d.submitted[0].text == "My name is Ada.");
  CHECK(d.frame(R"({"type":"input.standalone"})") == "error:missing_field");
  CHECK(d.frame(R"({"type":"input.standalone","contents":[]})") == "error:invalid_payload");
}

TEST_CASE("nobody is judged who offers no functions, and none are called where the server calls none") {
  driver none;
  none.to_active();
  none.frame(test::append_frame(dialect::current, unit_samples, "", 0.25F));
  none.step(test::listen_report(0));
  CHECK(none.frame(test::append_frame(dialect::current, unit_samples, "", 0)) == "unit:1");
  session_limits limits;
  limits.delegations = 0;
  asking off(limits);
  CHECK(off.asked.empty());
  REQUIRE(off.said_created.refused.size() == 1);
  CHECK(off.said_created.refused[0].field == "tools");
  CHECK(off.said_created.refused[0].why == "this server calls no functions in audio and video");
}

namespace {

/// What `session.created` says of the wishes of this payload.
nlohmann::json wishes(const std::string& payload, driver::options with = {}) {
  driver d(std::move(with));
  d.to_connected();
  d.frame(test::init_frame(payload));
  d.opened();
  encode_context context;
  context.spoken = dialect::current;
  const auto shown = nlohmann::json::parse(encode(test::said_event<session_created>(d.last), context));
  nlohmann::json out{{"granted", shown.value("granted", nlohmann::json::array())},
                     {"refused", nlohmann::json::object()}};
  for (const auto& each : shown.value("refused", nlohmann::json::array())) out["refused"][each["field"]] = each["why"];
  return out;
}

} // namespace

TEST_CASE("each wish of an init that is not granted is named, with the reason") {
  using nlohmann::json;
  CHECK(wishes("{}") == json{{"granted", json::array()}, {"refused", json::object()}});
  CHECK(
      wishes(
          R"({"future":1,"config":{"non_spoken_scheduling":"quality","generation":{"temperature":0.5,"beams":2}}})") ==
      json{{"granted", json::array()},
           {"refused",
            {{"future", "is not known to this server"},
             {"config.non_spoken_scheduling", "is not known to this server"},
             {"config.generation.beams", "is not known to this server"}}}});
  session_limits limits;
  limits.resume = {};
  limits.transcribes = false;
  limits.allow_client_window = false;
  CHECK(wishes(
            R"({"resume":true,"config":{"transcribe_input":true,"sliding_window_mode":"basic","generate_audio":true}})",
            {"audio", limits, {true, false, false}}) ==
        json{{"granted", json::array()},
             {"refused",
              {{"resume", "this server keeps no sessions for clients that are away"},
               {"config.transcribe_input", "this server writes down nothing that users say"},
               {"config.sliding_window_mode", "the server chooses it"},
               {"config.generate_audio", "this server's model has no voice"}}}});
  CHECK(wishes(R"({"resume":true,"config":{"transcribe_input":true,"generate_audio":true}})") ==
        json{{"granted", {"resume", "config.transcribe_input", "config.generate_audio"}}, {"refused", json::object()}});
  CHECK(wishes(R"({"config":{},"voice":{}})", {"chat", {}, {true, true, true}})["refused"] ==
        json{{"config", "has no effect in chat"}, {"voice", "has no effect in chat"}});
  const std::string required = R"({"tools":[{"name":"f"}],"tool_choice":"required"})";
  CHECK(wishes(required) ==
        json{{"granted", {"tools"}},
             {"refused", {{"tool_choice", "a conversation calls a function when its user asks for something: auto"}}}});
  const auto large = R"({"tools":[{"name":"f","description":")" + std::string(17'000, 'x') + R"("}]})";
  CHECK(wishes(large)["refused"] == json{{"tools", "in audio and video they may have 16 KiB together"}});
  std::string many = "{";
  for (int i = 0; i < 40; ++i) many += "\"x" + std::to_string(i) + "\":1,";
  many.back() = '}';
  CHECK(wishes(many)["refused"].size() == 16);
}

TEST_CASE("the events of a call, in upstream's words") {
  using nlohmann::json;
  encode_context context{dialect::current, "sess_1", false, 0};
  const auto shown = [&](const server_event& event) { return json::parse(encode(event, context)); };
  CHECK(shown(duplex_call_begin{"call_1", 3, 100, 2000}) == json{{"type", "response.tool_call.begin"},
                                                                 {"session_id", "sess_1"},
                                                                 {"tool_call_id", "call_1"},
                                                                 {"unit_index", 3},
                                                                 {"start_ms", 100},
                                                                 {"end_ms", 2000}});
  CHECK(shown(duplex_call_delta{"call_1", 3, "<tool_call>"}) ==
        json{{"type", "response.tool_call.delta"},
             {"session_id", "sess_1"},
             {"tool_call_id", "call_1"},
             {"unit_index", 3},
             {"steps", {{{"kind", "text"}, {"text", "<tool_call>"}}}}});
  CHECK(shown(duplex_call_done{call("call_1", "f", R"({"a": 1})"), 3, "x"}) ==
        json{{"type", "response.tool_call.done"},
             {"session_id", "sess_1"},
             {"tool_call_id", "call_1"},
             {"unit_index", 3},
             {"full_text", "x"},
             {"call", {{"name", "f"}, {"arguments", {{"a", 1}}}}}});
  CHECK(shown(duplex_call_abort{"call_1", "timeout"}) == json{{"type", "response.tool_call.abort"},
                                                              {"session_id", "sess_1"},
                                                              {"tool_call_id", "call_1"},
                                                              {"reason", "timeout"}});
}

} // namespace parley::protocol
