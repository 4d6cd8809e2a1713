#include "protocol/codec/event_writer.hpp"
#include "protocol/conformance/tables.hpp"
#include "protocol/openai/beta/beta_adapter.hpp"
#include "protocol/openai/beta/beta_events.hpp"
#include "protocol/openai/realtime/machine.hpp"
#include "tests/protocol/server_events.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace openai = parley::protocol::openai;
namespace speech = parley::protocol::speech;
namespace rt = parley::protocol::openai::realtime;
using nlohmann::json;

namespace {

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> out;
  for (const auto& [name, value] : object.items()) out.insert(name);
  return out;
}

/// Checks an event of the beta by its table.
void check_beta(const json& event) {
  const auto& rules = parley::protocol::conformance::tables("beta");
  const auto& fields = parley::protocol::conformance::tables("realtime").at("fields");
  const auto type = event["type"].get<std::string>();
  INFO(event.dump());
  CHECK_FALSE(rules["names"].contains(type));
  CHECK(type != rules["absent"]);
  auto ga = type;
  for (const auto& [name, beta] : rules["names"].items())
    if (beta == type) ga = name;
  REQUIRE(fields.contains(ga));
  std::set<std::string> wanted{"type", "event_id"};
  for (const auto& name : fields[ga]) wanted.insert(name);
  CHECK(keys_of(event) == wanted);
  if (event.contains("session")) CHECK(keys_of(event["session"]) == rules["session"].get<std::set<std::string>>());
  if (event.contains("response")) CHECK(keys_of(event["response"]) == rules["response"].get<std::set<std::string>>());
  if (event.contains("item"))
    for (const auto& part : event["item"].value("content", json::array()))
      CHECK(std::count(rules["content"].begin(), rules["content"].end(), part["type"]) == 1);
}

/// A client of the beta; what the inner session gets is kept.
class beta_client {
public:
  explicit beta_client(bool known)
      : server_(std::make_unique<rt::machine>(rt::origin{"parley", true, now_, 1'700'000'000}, rt::machine_terms{},
                                              [random = std::make_shared<std::mt19937_64>(1)] { return (*random)(); }),
                known) {
    first_ = carry_out(server_.start(now_), known);
  }

  std::vector<json> send(const json& event) { return carry_out(server_.on_frame(event.dump(), now_), true); }
  std::vector<json> inner(const json& event) {
    const auto said = parley::tests::event_in(event.dump());
    REQUIRE(said);
    return carry_out(server_.on_inner_event(1, *said, now_), true);
  }
  const std::vector<json>& first() const { return first_; }
  const std::vector<json>& asked() const { return asked_; }

private:
  std::vector<json> carry_out(const openai::effects& effects, bool beta) {
    std::vector<json> out;
    for (const auto& effect : effects) {
      if (const auto* said = std::get_if<parley::protocol::guest::to_session>(&effect))
        asked_.push_back(json::parse(parley::protocol::written(said->event)));
      if (const auto* turn = std::get_if<parley::protocol::guest::turn_to_session>(&effect))
        asked_.push_back(json::parse(parley::protocol::written(turn->turn->make().value())));
      const auto* frame = std::get_if<openai::to_client>(&effect);
      if (frame == nullptr) continue;
      out.push_back(json::parse(frame->frame));
      if (beta) check_beta(out.back());
    }
    return out;
  }

  const std::chrono::steady_clock::time_point now_{std::chrono::hours(1)};
  openai::beta::beta_adapter server_;
  std::vector<json> first_;
  std::vector<json> asked_;
};

std::vector<std::string> types_of(const std::vector<json>& events) {
  std::vector<std::string> out;
  for (const auto& each : events) out.push_back(each["type"]);
  return out;
}

const json manual{{"modalities", {"text", "audio"}}, {"voice", "alloy"},
                  {"instructions", "Be kind."},      {"input_audio_format", "g711_ulaw"},
                  {"output_audio_format", "pcm16"},  {"input_audio_transcription", {{"model", "whisper-1"}}},
                  {"turn_detection", nullptr},       {"temperature", 0.9},
                  {"max_response_output_tokens", 77}};

} // namespace

TEST_CASE("a client of the beta sees its own flat session") {
  beta_client client(true);
  CHECK(client.first()[0]["session"]["modalities"] == json{"text", "audio"});
  CHECK(client.first()[0]["session"]["turn_detection"]["type"] == "semantic_vad");
  const auto told = client.send({{"type", "session.update"}, {"session", manual}});
  REQUIRE(types_of(told) == std::vector<std::string>{"session.updated"});
  const auto& session = told[0]["session"];
  CHECK(session["voice"] == "alloy");
  CHECK(session["instructions"] == "Be kind.");
  CHECK(session["input_audio_format"] == "g711_ulaw");
  CHECK(session["output_audio_format"] == "pcm16");
  CHECK(session["turn_detection"].is_null());
  CHECK(session["temperature"] == 0.9);
  CHECK(session["max_response_output_tokens"] == 77);
  const auto wrong = client.send({{"type", "session.update"}, {"session", {{"input_audio_format", "opus"}}}});
  CHECK(wrong[0]["error"]["code"] == "invalid_value");
}

TEST_CASE("a client of the beta gets its answer by the older names") {
  beta_client client(true);
  client.send({{"type", "session.update"}, {"session", manual}});
  const auto made = client.send(
      {{"type", "conversation.item.create"},
       {"item", {{"type", "message"}, {"role", "user"}, {"content", {{{"type", "input_text"}, {"text", "Hi"}}}}}}});
  CHECK(types_of(made) == std::vector<std::string>{"conversation.item.created"});
  const auto created =
      client.send({{"type", "response.create"}, {"response", {{"modalities", {"text"}}, {"metadata", {{"a", "b"}}}}}});
  CHECK(created[0]["response"]["modalities"] == json{"text"});
  CHECK(created[0]["response"]["metadata"]["a"] == "b");
  client.inner({{"type", "session.created"}, {"session_id", "s"}});
  CHECK(client.asked().back()["input"]["generation"]["max_new_tokens"] == 77);
  CHECK_FALSE(client.asked().back()["input"].contains("tts"));
  const auto words =
      client.inner({{"type", "response.output.delta"}, {"kind", "text"}, {"text", "Hello"}, {"session_id", "s"}});
  CHECK(types_of(words) == std::vector<std::string>{"response.output_item.added", "conversation.item.created",
                                                    "response.content_part.added", "response.text.delta"});
  const auto done = client.inner({{"type", "response.done"}, {"reason", "turn_end"}, {"session_id", "s"}});
  CHECK(types_of(done) == std::vector<std::string>{"response.text.done", "response.content_part.done",
                                                   "response.output_item.done", "response.done",
                                                   "rate_limits.updated"});
  CHECK(done[3]["response"]["output"][0]["content"][0]["type"] == "text");
}

TEST_CASE("the first session.update in the beta's form makes a client one of the beta's") {
  beta_client client(false);
  CHECK(client.first()[0]["session"]["type"] == "realtime");
  CHECK(client.send({{"type", "session.update"}, {"session", manual}})[0]["session"].contains("modalities"));

  CHECK_FALSE(openai::beta::is_beta_update(R"({"type":"session.update","session":{"type":"realtime","voice":"a"}})"));
  CHECK_FALSE(openai::beta::is_beta_update(R"({"type":"session.update","session":{"instructions":"a"}})"));
  CHECK_FALSE(openai::beta::is_beta_update(R"({"type":"session.update","session":3})"));
}

TEST_CASE("the first event tells clients of the Realtime API from Parley's own") {
  for (const auto* session : {R"({"type":"realtime"})", R"({"audio":{}})", R"({"output_modalities":["text"]})",
                              R"({"modalities":["text"],"instructions":"a"})", R"({"turn_detection":null})"}) {
    CAPTURE(session);
    CHECK(rt::is_first_update(R"({"type":"session.update","session":)" + std::string(session) + "}"));
  }
  for (const auto* frame :
       {R"({"type":"session.update","session":{"instructions":"a","ref_audio":"b"}})",
        R"({"type":"session.update","session":{"type":"transcription"}})", R"({"type":"session.update","session":3})",
        R"({"type":"session.update"})", R"({"type":"session.init","session":{"type":"realtime"}})", "[]", "", "{"}) {
    CAPTURE(frame);
    CHECK_FALSE(rt::is_first_update(frame));
  }
  CHECK_FALSE(openai::beta::is_beta_update("["));
}

TEST_CASE("an update of many tools is understood as well as one of few") {
  json tools = json::array();
  for (int i = 0; i < 64; ++i) {
    json properties;
    for (int each = 0; each < 20; ++each) properties["p" + std::to_string(each)] = {{"type", "string"}};
    tools.push_back({{"type", "function"}, {"name", "f" + std::to_string(i)}, {"parameters", properties}});
  }
  double temperature = 0.8;
  const json frame{{"type", "session.update"}, {"session", {{"voice", "alloy"}, {"tools", tools}}}};
  const auto session = json::parse(openai::beta::from_beta(frame.dump(), temperature))["session"];
  CHECK(session["audio"]["output"]["voice"] == "alloy");
  CHECK(session["tools"] == tools);
}

TEST_CASE("an event with a wider object than any real one goes to the beta as it is") {
  json wide;
  for (int i = 0; i < 1000; ++i) wide["k" + std::to_string(i)] = 0;
  const auto frame = json{{"type", "session.updated"}, {"session", {{"tools", {{{"parameters", wide}}}}}}}.dump();
  CHECK(openai::beta::to_beta(frame, 0.8) == frame);
}

TEST_CASE("an update of more values than any real one passes as it is") {
  std::string many;
  for (int i = 0; i < 5000; ++i) many += ",\"k" + std::to_string(i) + "\":0";
  const auto frame = R"({"type":"session.update","session":{"voice":"alloy")" + many + "}}";
  double temperature = 0.8;
  CHECK(openai::beta::from_beta(frame, temperature) == frame);
}

TEST_CASE("what is no event of the beta passes as it is") {
  double temperature = 0.8;
  for (const std::string frame :
       {R"({"type":"session.update","session":{"voice":"\ud800"}})", R"({"type":"session.update"})",
        R"({"type":"input_audio_buffer.append","audio":"AAAA"})", "{", R"({"type":7})"})
    CHECK(openai::beta::from_beta(frame, temperature) == frame);
}

TEST_CASE("of a client's event only what differs is rewritten") {
  double temperature = 0;
  const std::string items = R"([ {"type":"message", "role":"user","content":[]} ])";
  const auto frame = R"({"type":"response.create","response":{"modalities":["text"],"input":)" + items + "}}";
  CHECK(openai::beta::from_beta(frame, temperature) ==
        R"({"type":"response.create","response":{"input":)" + items + R"(,"output_modalities":["text"]}})");
  for (const auto* type : {"session.update", "response.create"}) {
    const json large = {{"type", type},
                        {type[0] == 's' ? "session" : "response", {{"instructions", std::string(1u << 20, 'x')}}}};
    CHECK(openai::beta::from_beta(large.dump(), temperature) == large.dump());
  }
}

TEST_CASE("what is too long to be rewritten is refused") {
  beta_client client(true);
  const auto told = client.send(
      {{"type", "session.update"}, {"session", {{"instructions", std::string(2u << 20, 'x')}, {"voice", "alloy"}}}});
  REQUIRE(told.size() == 1);
  CHECK(told[0]["error"]["param"] == "session.instructions");
}
