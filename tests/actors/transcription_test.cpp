#include "protocol/codec/event_writer.hpp"
#include "protocol/speech/sound.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

// What users say, written down in slots that nobody else wants.
using namespace parley;
using namespace parley::tests;
using nlohmann::json;

namespace {

config::settings writing_settings() {
  auto settings = test_server::quick_settings();
  settings.openai.transcribe = config::transcription::chat;
  return settings;
}

test_client connect_for_transcripts(test_server& to) {
  auto link = std::make_shared<recording_link>();
  actors::connection_info info;
  info.remote = "test";
  info.accepted = std::chrono::steady_clock::now();
  info.realtime = actors::realtime_request{};
  test_client client{link, to.core().admit(std::move(info), link)};
  client.send_text(R"({"type":"session.update","session":{"type":"realtime","audio":{"input":{
                       "transcription":{"model":"any"},"turn_detection":null}}}})");
  client.link->next("session.updated");
  return client;
}

/// Half a second of a tone, committed.
void say_something(test_client& client) {
  std::vector<float> samples(protocol::speech::model_output_rate / 2);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = 0.3f * std::sin(0.05f * static_cast<float>(i));
  protocol::speech::sound_encoder encode({});
  client.send_text(R"({"type":"input_audio_buffer.append","audio":")" + encode.feed(samples) + R"("})");
  client.send_text(R"({"type":"input_audio_buffer.commit"})");
}

/// A second of a tone in Parley's own protocol; of silence if it has no amplitude.
std::string own_append(float amplitude) {
  std::vector<float> samples(16'000);
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = amplitude * std::sin(0.05f * static_cast<float>(i));
  protocol::append_event event;
  event.samples = std::make_shared<const std::vector<float>>(std::move(samples));
  return protocol::written(event);
}

std::size_t turns_in(const stub_script& script) {
  return script.all<conversation::submit_turn>().size();
}

} // namespace

TEST_CASE("a committed turn is written down by a session of its own, which is gone afterwards") {
  stub_script script;
  test_server core(writing_settings());
  core.add_up(script);
  auto client = connect_for_transcripts(core);
  say_something(client);
  const auto item = client.link->next("input_audio_buffer.committed")["item_id"];
  CHECK(client.link->next("conversation.item.input_audio_transcription.delta")["delta"] == "Hello there.");
  const auto told = client.link->next("conversation.item.input_audio_transcription.completed");
  CHECK(told["item_id"] == item);
  CHECK(told["transcript"] == "Hello there.");
  CHECK(told["usage"]["seconds"].get<double>() == Approx(0.5).margin(0.02));
  CHECK(core.all_free());
  CHECK(core.metric(R"(parley_transcripts_total{result="completed"})") == "1");
  client.vanish();
}

TEST_CASE("whoever wants the slot of a transcript gets it, and the transcript comes later") {
  stub_script script(1);
  script.answer_with([](const conversation::command& order, const stub_script::sink& tell) {
    if (!std::holds_alternative<conversation::submit_turn>(order)) stub_script::answer_as_usual(order, tell);
  }); // the turn of the transcript goes on and on
  test_server core(writing_settings());
  core.add_up(script);
  auto client = connect_for_transcripts(core);
  say_something(client);
  REQUIRE(script.eventually([](const auto& s) { return turns_in(s) == 1; }));
  auto other = core.connect("audio");
  other.init();
  other.step();
  script.answer_with(stub_script::answer_as_usual);
  CHECK(other.close_session() == "user_stop");
  CHECK(client.link->next("conversation.item.input_audio_transcription.completed")["transcript"] == "Hello there.");
  client.vanish();
  other.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a client that vanishes takes its transcripts with it") {
  stub_script script;
  script.answer_with([](const auto&, const auto&) {}); // never
  test_server core(writing_settings());
  core.add_up(script);
  auto client = connect_for_transcripts(core);
  say_something(client);
  say_something(client);
  REQUIRE(script.eventually([](const auto& s) { return turns_in(s) == 1; }));
  client.vanish();
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0; }));
  CHECK(core.all_free());
}

TEST_CASE("without a worker there is no transcript, and the connection stays") {
  test_server core(writing_settings());
  auto client = connect_for_transcripts(core);
  say_something(client);
  const auto failed = client.link->next("conversation.item.input_audio_transcription.failed");
  CHECK(failed["error"]["code"] == "server_busy");
  client.send_text(R"({"type":"input_audio_buffer.clear"})");
  client.link->next("input_audio_buffer.cleared");
  client.vanish();
}

TEST_CASE("a transcript whose worker dies is made on another one") {
  stub_script first, second;
  first.answer_with([](const conversation::command& order, const auto&) {
    if (std::holds_alternative<conversation::submit_turn>(order)) throw std::runtime_error("the device is gone");
  });
  test_server core(writing_settings());
  core.add_up(first);
  auto client = connect_for_transcripts(core);
  core.add_up(second);
  say_something(client);
  CHECK(client.link->next("conversation.item.input_audio_transcription.completed")["transcript"] == "Hello there.");
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("connections and what happens on them are counted by dialect") {
  stub_script script;
  test_server core(writing_settings());
  core.add_up(script);
  auto client = connect_for_transcripts(core);
  CHECK(core.metric(R"(parley_openai_connections{dialect="realtime",lane="manual"})") == "1");
  CHECK(core.metric(R"(parley_openai_connections{dialect="realtime",lane="duplex"})") == "0");
  client.send_text(R"({"type":"no.such.event"})");
  client.link->next("error");
  CHECK(core.metric(R"(parley_openai_errors_total{code="invalid_value",dialect="realtime"})") == "1");
  client.send_text(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
  client.link->next("response.done");
  CHECK(core.metric(R"(parley_openai_events_total{dialect="realtime",event="side_turn"})") == "1");
  client.vanish();
  CHECK(
      eventually([&] { return core.metric(R"(parley_openai_connections{dialect="realtime",lane="manual"})") == "0"; }));
}

TEST_CASE("a session of Parley's own is told what its user said if it asks") {
  stub_script script;
  test_server core(writing_settings());
  core.add_up(script);
  auto client = core.connect("audio");
  client.init(R"({"config":{"transcribe_input":true},"resume":true})");
  client.send_text(own_append(0.3f));
  client.send_text(own_append(0.0f));
  const auto told = client.link->next("input.transcript");
  CHECK(told["text"] == "Hello there.");
  CHECK(told["start_ms"].get<int>() < 200);
  CHECK(told["end_ms"].get<int>() >= 900);
  CHECK(told["event_id"].get<int>() > 1);
  client.vanish();
}

TEST_CASE("where the server writes nothing down, a session that asks is told so") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect("audio");
  client.init(R"({"config":{"transcribe_input":true}})");
  client.send_text(own_append(0.3f));
  client.send_text(own_append(0.0f));
  CHECK(client.link->next("input.transcript")["problem"] == "busy");
  client.vanish();
}

namespace {

/// Chat answers a call of get_time to whoever offers functions.
void call_the_clock(stub_script& script) {
  script.answer_with([](const conversation::command& order, const stub_script::sink& tell) {
    const auto* turn = std::get_if<conversation::submit_turn>(&order);
    if (!turn || turn->tools.empty()) return stub_script::answer_as_usual(order, tell);
    conversation::chat_done done{turn->session, turn->turn, conversation::finish_reason::turn_end, "", nullptr, {}, {}};
    done.calls.push_back({"", "get_time", "{}"});
    done.used.input_audio = 500;
    tell(std::move(done));
  });
}

const std::string clock_offer = R"({"tools":[{"type":"function","function":{"name":"get_time"}}]})";

} // namespace

TEST_CASE("a conversation calls a function in the background, and reads the result with its next second") {
  stub_script script;
  call_the_clock(script);
  test_server core; // it writes nothing down
  core.add_up(script);
  auto client = core.connect("audio");
  client.init(clock_offer);
  client.send_text(own_append(0.3f));
  client.send_text(own_append(0.0f));
  const auto begin = client.link->next("response.tool_call.begin");
  const auto done = client.link->next("response.tool_call.done");
  CHECK(done["tool_call_id"] == begin["tool_call_id"]);
  CHECK(done["call"] == json{{"name", "get_time"}, {"arguments", json::object()}});
  client.send_text(
      json{{"type", "input.tool_result"}, {"tool_call_id", done["tool_call_id"]}, {"content", "14:30"}}.dump());
  for (int second = 0; second < 3; ++second) client.step();
  CHECK(client.step()["usage"]["input_tokens"] >= 500); // what judging took is counted
  CHECK(script.eventually([](const stub_script& seen) {
    const auto units = seen.all<conversation::submit_unit>();
    return std::any_of(units.begin(), units.end(),
                       [](const auto& unit) { return unit.context.size() == 2 && unit.context[1].text == "14:30"; });
  }));
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("where functions are not called in conversations, none is judged") {
  stub_script script;
  call_the_clock(script);
  auto settings = test_server::quick_settings();
  settings.limits.delegations = 0;
  test_server core(settings);
  core.add_up(script);
  auto client = core.connect("audio");
  client.init(clock_offer);
  client.send_text(own_append(0.3f));
  client.send_text(own_append(0.0f));
  client.send_text(own_append(0.0f));
  CHECK(script.eventually([](const auto& seen) { return seen.template all<conversation::submit_unit>().size() >= 3; }));
  CHECK(script.eventually([](const auto& seen) { return turns_in(seen) == 0; }));
  client.vanish();
}
