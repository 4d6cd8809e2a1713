#include "protocol/trace/connection_trace.hpp"
#include "protocol/trace/otlp_json.hpp"
#include "protocol/trace/session_trace.hpp"
#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

using namespace parley::protocol;
using namespace parley::protocol::trace;
using namespace parley::tests;
using namespace std::chrono_literals;
using document = nlohmann::json;
namespace conversation = parley::conversation;

namespace {

const std::string good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

class kept_spans final : public span_sink {
public:
  void take(span&& what) override { all.push_back(std::move(what)); }

  const span& named(const std::string& name) const {
    const auto found = std::find_if(all.begin(), all.end(), [&](const span& each) { return each.name == name; });
    REQUIRE(found != all.end());
    return *found;
  }

  std::vector<span> all;
};

random_source counting(std::uint64_t from) {
  return [next = from]() mutable { return next++; };
}

std::string text_of(const span& one, const std::string& key) {
  for (const auto& each : one.attributes)
    if (each.key == key) return std::get<std::string>(each.value);
  return "(none)";
}

std::int64_t number_of(const span& one, const std::string& key) {
  for (const auto& each : one.attributes)
    if (each.key == key) return std::get<std::int64_t>(each.value);
  return -1;
}

double seconds_of(const span& one, const std::string& key) {
  for (const auto& each : one.attributes)
    if (each.key == key) return std::get<double>(each.value);
  return -1;
}

/// A session whose steady clock begins at 0 and whose calendar at a round number.
struct traced {
  static constexpr std::int64_t epoch = 1'700'000'000'000'000'000;
  std::shared_ptr<kept_spans> kept = std::make_shared<kept_spans>();
  std::shared_ptr<const scope> at = tracer(1, counting(1), kept).begin(good, "a=1");

  span_writer writer() const { return {at, counting(1000), {time_point(), epoch}}; }
  static time_point t(std::chrono::milliseconds since) { return time_point() + since; }
  static std::int64_t ns(std::chrono::milliseconds since) {
    return epoch + std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
  }
};

session_created created(std::string id) {
  session_created out;
  out.session_id = std::move(id);
  out.prompt_length = 12;
  return out;
}

output_delta said(output_kind kind, std::string text, bool sound = false) {
  output_delta out;
  out.kind = kind;
  out.text = std::move(text);
  out.response_id = "resp_1";
  if (sound) out.audio = std::make_shared<const std::vector<float>>(240, 0.f);
  return out;
}

} // namespace

TEST_CASE("a traceparent is read as the specification says, and nothing else is") {
  const auto from = read_caller(good, "");
  REQUIRE(from);
  CHECK(hex(from->trace) == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(hex(from->span) == "00f067aa0ba902b7");
  CHECK(from->sampled());
  CHECK(read_caller("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00", "")->sampled() == false);
  // A later version, which may say more; of its flags only the first is known.
  CHECK(read_caller("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-what.the-future", "")->flags == 1);
  for (const auto* bad : {
           "",
           "00",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-00",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0g",
           "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "0X-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
           "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
           "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
           "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
           "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x",
       }) {
    CAPTURE(bad);
    CHECK_FALSE(read_caller(bad, "a=1"));
  }
  CHECK_FALSE(read_caller(good + "," + good, "")); // sent twice
  CHECK_FALSE(read_caller("cc" + good.substr(2) + "-x,cc" + good.substr(2), ""));
}

TEST_CASE("a bad tracestate is left out, and the trace is the client's all the same") {
  for (const auto* state :
       {"a=1", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1 , b=2,\tc=3", "1a@sys=x", "a=1,,b=2,"}) {
    CAPTURE(state);
    CHECK(read_caller(good, state)->state == state);
  }
  std::string many;
  for (int i = 0; i < 33; ++i) many += (i > 0 ? ",k" : "k") + std::to_string(i) + "=1";
  for (const std::string& state :
       {std::string(), std::string("a"), std::string("A=1"), std::string("a=1=2"), std::string("a="),
        std::string("a=1,a=2"), std::string("1a=1"), std::string("a@1b=1"), std::string("a=\x01"),
        std::string("a=\xc3\xa4"), many, "a=" + std::string(257, 'x'),
        "a=" + std::string(250, 'x') + ",b=" + std::string(256, 'y') + ",c=" + std::string(8, 'z')}) {
    CAPTURE(state);
    const auto from = read_caller(good, state);
    REQUIRE(from);
    CHECK(from->state.empty());
  }
}

TEST_CASE("what is sampled is the parent's choice, or a share by the trace's id") {
  const auto kept = std::make_shared<kept_spans>();
  const tracer none(0, counting(1), kept);
  CHECK(none.begin(good, "")->to == kept);
  CHECK(none.begin("", "")->to == nullptr);
  const tracer all(1, counting(1), kept);
  CHECK(all.begin(good.substr(0, 53) + "00", "")->to == nullptr);
  const auto own = all.begin("nonsense", "a=1");
  CHECK(own->to == kept);
  CHECK_FALSE(own->parent);
  CHECK_FALSE(own->state);
  CHECK(own->traceparent() == "00-" + hex(own->trace) + "-" + hex(own->self) + "-03");

  const auto theirs = all.begin(good, "a=1");
  CHECK(theirs->traceparent() == "00-4bf92f3577b34da6a3ce929d0e0e4736-" + hex(theirs->self) + "-01");
  CHECK(hex(theirs->self) != "00f067aa0ba902b7");

  trace_id id{};
  CHECK(is_among(1e-18, id)); // the smallest of all
  CHECK_FALSE(is_among(0, id));
  id.fill(0xff);
  CHECK(is_among(1, id));
  CHECK_FALSE(is_among(0.999, id));
  id = {};
  id[9] = 0x80; // the middle of its last seven bytes
  CHECK_FALSE(is_among(0.5, id));
  CHECK(is_among(0.5001, id));
}

TEST_CASE("spans of a session in full duplex") {
  const traced with;
  session_trace trace(with.writer(), with.t(0ms));
  trace.enqueued(with.t(1ms));
  session_queued queued;
  queued.place.position = 3;
  trace.sent(queued, mode::audio, with.t(2ms));
  trace.granted("nano", with.t(500ms));
  trace.opens(with.t(600ms));
  trace.sent(created("sess_a"), mode::audio, with.t(700ms));
  trace.submitted(false, with.t(1000ms));
  trace.sent(said(output_kind::listen, ""), mode::audio, with.t(1010ms));
  trace.submitted(false, with.t(2000ms));
  auto text = said(output_kind::text, "secret words");
  text.chunk_usage.emplace();
  text.chunk_usage->input_audio = 10;
  text.chunk_usage->output_text = 4;
  trace.sent(text, mode::audio, with.t(2050ms));
  auto sound = said(output_kind::audio, "", true);
  sound.measured.wall_clock_ms = 80;
  sound.measured.queue_ms = 20; // the unit had waited behind another one
  trace.sent(sound, mode::audio, with.t(2080ms));
  trace.submitted(false, with.t(3000ms));
  auto last = said(output_kind::audio, "", true);
  last.end_of_turn = true;
  last.measured.wall_clock_ms = 50;
  trace.sent(last, mode::audio, with.t(3050ms));
  usage total;
  total.input_audio = 30;
  trace.end("sess_a", mode::audio, total, {{"parley.reason", "user_stop"}}, "", with.t(4000ms));
  trace.end("sess_a", mode::audio, total, {}, "", with.t(5000ms));

  REQUIRE(with.kept->all.size() == 4);
  for (const auto& each : with.kept->all) {
    CHECK(hex(each.trace) == "4bf92f3577b34da6a3ce929d0e0e4736");
    CHECK(*each.state == "a=1");
    CHECK(each.error.empty());
    if (each.name != "session audio") CHECK(each.parent == with.at->self);
  }
  const auto& queue = with.kept->named("queue");
  CHECK(queue.start_ns == with.ns(1ms));
  CHECK(queue.end_ns == with.ns(500ms));
  CHECK(number_of(queue, "parley.queue.position") == 3);
  const auto& open = with.kept->named("open");
  CHECK(open.start_ns == with.ns(600ms));
  CHECK(open.end_ns == with.ns(700ms));
  const auto& turn = with.kept->named("realtime_inference nano");
  CHECK(turn.start_ns == with.ns(1980ms));
  CHECK(turn.end_ns == with.ns(3050ms));
  CHECK(turn.kind == span_kind::internal);
  CHECK(seconds_of(turn, "gen_ai.response.time_to_first_chunk") == Approx(0.07));
  CHECK(seconds_of(turn, "parley.time_to_first_sound") == Approx(0.1));
  REQUIRE(turn.moments.size() == 1);
  CHECK(turn.moments[0].at_ns == with.ns(2080ms));
  CHECK(text_of(turn, "gen_ai.response.finish_reasons") == "stop");
  CHECK(text_of(turn, "gen_ai.realtime_session.id") == "sess_a");
  CHECK(text_of(turn, "gen_ai.output.type") == "speech");
  CHECK(number_of(turn, "gen_ai.usage.input_tokens") == 10);
  CHECK(number_of(turn, "gen_ai.usage.output_tokens") == 4);
  const auto& whole = with.kept->named("session audio");
  CHECK(whole.id == with.at->self);
  CHECK(hex(*whole.parent) == "00f067aa0ba902b7");
  CHECK(whole.parent_is_remote);
  CHECK(whole.kind == span_kind::server);
  CHECK(whole.start_ns == with.ns(0ms));
  CHECK(whole.end_ns == with.ns(4000ms));
  CHECK(text_of(whole, "parley.reason") == "user_stop");
  CHECK(number_of(whole, "gen_ai.usage.audio.input_tokens") == 30);

  for (const auto& each : with.kept->all)
    CHECK(encode({"1", {}}, {&each, 1}).find("secret words") == std::string::npos);
}

TEST_CASE("spans of a chat: first sound, calls of functions, failures") {
  const traced with;
  session_trace trace(with.writer(), with.t(0ms));
  trace.granted("nano", with.t(0ms));
  trace.sent(created("sess_b"), mode::chat, with.t(1ms));

  trace.submitted(true, with.t(10ms));
  conversation::chat_delta pieces;
  pieces.calls = {{0, "weather", ""}};
  trace.heard(pieces, with.t(20ms));
  pieces.calls = {{0, "", "{\"place\":\"secret words\"}"}, {1, "clock", ""}};
  trace.heard(pieces, with.t(30ms));
  trace.sent(response_tool_call{"resp_1", "", {"call_1", "weather", "{\"place\":\"secret words\"}"}}, mode::chat,
             with.t(50ms));
  trace.sent(response_tool_call{"resp_1", "", {"call_2", "clock", "{}"}}, mode::chat, with.t(50ms));
  response_done done;
  done.response_id = "resp_1";
  done.reason = "turn_end";
  trace.sent(done, mode::chat, with.t(50ms));
  const auto chat = with.kept->named("chat nano");
  CHECK(text_of(chat, "gen_ai.response.finish_reasons") == "tool_calls");
  const auto& weather = with.kept->named("tool_call weather");
  CHECK(weather.parent == chat.id);
  CHECK(weather.start_ns == with.ns(20ms));
  CHECK(weather.end_ns == with.ns(30ms));
  CHECK(text_of(weather, "gen_ai.tool.call.id") == "call_1");
  const auto& clock = with.kept->named("tool_call clock");
  CHECK(clock.start_ns == with.ns(30ms));
  CHECK(clock.end_ns == with.ns(50ms));
  for (const auto& each : with.kept->all)
    CHECK(encode({"1", {}}, {&each, 1}).find("secret words") == std::string::npos);

  with.kept->all.clear();
  trace.submitted(true, with.t(100ms));
  trace.heard(conversation::failed{1, 2, conversation::failure_kind::context_full, "secret words"}, with.t(110ms));
  done.reason = "error";
  trace.sent(done, mode::chat, with.t(120ms));
  CHECK(with.kept->named("chat nano").error == "context_full");
  CHECK(text_of(with.kept->named("chat nano"), "error.type") == "context_full");

  trace.submitted(true, with.t(200ms));
  trace.end("sess_b", mode::chat, {}, {}, "backend_error", with.t(300ms));
  CHECK(with.kept->named("session chat").error == "backend_error");
}

TEST_CASE("a session moves to another worker, in the middle of a turn") {
  const traced with;
  session_trace trace(with.writer(), with.t(0ms));
  trace.enqueued(with.t(0ms));
  trace.granted("nano", with.t(0ms));
  trace.opens(with.t(0ms));
  trace.sent(created("sess_c"), mode::chat, with.t(1ms));
  trace.submitted(true, with.t(10ms));
  trace.worker_lost(1, with.t(20ms));
  trace.enqueued(with.t(21ms));
  trace.worker_lost(2, with.t(25ms)); // once more on the way
  trace.granted("nano", with.t(30ms));
  trace.restored(3, with.t(40ms));
  trace.submitted(true, with.t(41ms));
  response_done done;
  done.reason = "turn_end";
  trace.sent(done, mode::chat, with.t(60ms));
  trace.end("sess_c", mode::chat, {}, {}, "", with.t(70ms));

  const auto& move = with.kept->named("failover");
  CHECK(move.start_ns == with.ns(20ms));
  CHECK(move.end_ns == with.ns(40ms));
  CHECK(number_of(move, "parley.worker.lost") == 1);
  CHECK(number_of(move, "parley.worker") == 3);
  const auto waits = std::count_if(with.kept->all.begin(), with.kept->all.end(), [&](const span& each) {
    return each.name == "queue" && each.parent == move.id && each.start_ns == with.ns(21ms);
  });
  CHECK(waits == 1);
  const auto& turn = with.kept->named("chat nano");
  CHECK(turn.start_ns == with.ns(10ms));
  CHECK(turn.end_ns == with.ns(60ms));
}

TEST_CASE("a session that gets no slot ends with the reason") {
  const traced with;
  session_trace trace(with.writer(), with.t(0ms));
  trace.enqueued(with.t(1ms));
  trace.refused(with.t(2ms));
  trace.sent(error_event{error_code::queue_full, "too many"}, mode::video, with.t(2ms));
  trace.end("sess_d", mode::video, {}, {}, "", with.t(3ms));
  CHECK(with.kept->named("queue").error == "refused");
  CHECK(with.kept->named("session video").error == "queue_full");
}

TEST_CASE("a turn of a user's goes from the end of the speech to the first sound") {
  const traced with;
  connection_trace trace(with.writer(), with.t(0ms));
  using openai::turn_moment;
  trace.on(openai::note{openai::note::what::turn}, with.t(1000ms));
  trace.on(turn_moment{turn_moment::what::speech_ended, 500ms}, with.t(3000ms));
  trace.on(turn_moment{turn_moment::what::sound}, with.t(3200ms));
  trace.on(turn_moment{turn_moment::what::answered}, with.t(3300ms)); // no turn is open
  trace.on(openai::note{openai::note::what::turn}, with.t(5000ms));
  trace.on(turn_moment{turn_moment::what::speech_ended, 9000ms}, with.t(5001ms)); // its sound came all at once
  trace.end("sess_e", "realtime", "", with.t(6000ms));
  REQUIRE(with.kept->all.size() == 3);
  CHECK(with.kept->all[0].start_ns == with.ns(2500ms));
  CHECK(with.kept->all[0].end_ns == with.ns(3200ms));
  CHECK(text_of(with.kept->all[0], "parley.answer") == "sound");
  CHECK(with.kept->all[1].start_ns == with.ns(5000ms));
  CHECK(text_of(with.kept->all[1], "parley.answer") == "unanswered");
  CHECK(with.kept->all[2].name == "realtime");
  CHECK(with.kept->all[2].id == with.at->self);
  CHECK(number_of(with.kept->all[2], "parley.turns") == 2);

  const auto inner = inside(*with.at, counting(5000));
  CHECK(inner->parent == with.at->self);
  CHECK_FALSE(inner->parent_is_remote);
  session_trace session({inner, counting(6000), {time_point(), traced::epoch}}, with.t(0ms));
  session.end("sess_f", mode::audio, {}, {}, "", with.t(1ms));
  CHECK(with.kept->named("session audio").kind == span_kind::internal);
}

TEST_CASE("the machine of the Realtime API tells how the user's turns are answered") {
  using openai::turn_moment;
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}}}}}}}});
  server.hear(tone(1));
  CHECK(server.moments().empty());
  server.hear(quiet(1));
  const auto ended = server.moments();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].about == turn_moment::what::speech_ended);
  CHECK(ended[0].ago >= 480ms); // the silence that it took to notice
  CHECK(ended[0].ago <= 620ms);
  server.grant();
  server.chat_delta("A long answer", 1);
  server.chat_delta(" goes on", 1);
  const auto heard = server.moments();
  REQUIRE(heard.size() == 1);
  CHECK(heard[0].about == turn_moment::what::sound);
}

TEST_CASE("spans are written as OTLP's JSON") {
  span one;
  one.trace = read_caller(good, "")->trace;
  one.id = read_caller(good, "")->span;
  one.parent = one.id;
  one.parent_is_remote = true;
  one.flags = 1;
  one.state = std::make_shared<const std::string>("a=\"1\"");
  one.name = "tool_call \"\n\xff" + std::string(400, 'x');
  one.kind = span_kind::server;
  one.start_ns = 1;
  one.end_ns = 9'223'372'036'854'775'807;
  one.attributes = {{"text", "a"}, {"int", std::int64_t{-5}}, {"double", 0.25}, {"list", "stop", true}};
  one.moments = {{"first_sound", 2}};
  one.error = "timeout";
  const auto body = document::parse(encode({"1.2.3", {{"service.name", "parley"}}}, {&one, 1}));
  CHECK(body["resourceSpans"][0]["resource"]["attributes"] ==
        document::parse(R"([{"key":"service.name","value":{"stringValue":"parley"}}])"));
  const auto& ours = body["resourceSpans"][0]["scopeSpans"][0];
  CHECK(ours["scope"] == document::parse(R"({"name":"parley","version":"1.2.3"})"));
  auto written = ours["spans"][0];
  CHECK(written["name"].get<std::string>().starts_with("tool_call \"\n\xEF\xBF\xBDxxx"));
  CHECK(written["name"].get<std::string>().size() <= 258);
  written.erase("name");
  CHECK(written == document::parse(R"({
    "traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "spanId": "00f067aa0ba902b7", "parentSpanId": "00f067aa0ba902b7",
    "traceState": "a=\"1\"", "flags": 769, "kind": 2, "startTimeUnixNano": "1", "endTimeUnixNano": "9223372036854775807",
    "attributes": [{"key": "text", "value": {"stringValue": "a"}}, {"key": "int", "value": {"intValue": "-5"}},
                   {"key": "double", "value": {"doubleValue": 0.25}},
                   {"key": "list", "value": {"arrayValue": {"values": [{"stringValue": "stop"}]}}}],
    "events": [{"timeUnixNano": "2", "name": "first_sound"}], "status": {"code": 2}})"));
  const span least{};
  const auto bare = document::parse(encode({"1", {}}, {&least, 1}))["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  for (const auto* absent : {"parentSpanId", "traceState", "attributes", "events", "status"})
    CHECK_FALSE(bare.contains(absent));
}
