#include "actors/bytes/unit_codec.hpp"
#include "protocol/codec/client_codec.hpp"
#include "protocol/session/engine_words.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <set>

// Checks that every option of the schema reaches the engine on another machine. A new option only has to be added to
// its type (conversation/) and to the reader of the wire format, and nowhere in between.

using namespace parley;
using nlohmann::json;

namespace {

/// Values that the schema's type allows, some of them different from the default.
std::vector<json> values_of(const json& type) {
  if (type.contains("anyOf")) return values_of(type["anyOf"][0]);
  if (type.contains("enum")) return type["enum"];
  if (type["type"] == "boolean") return {true, false};
  if (type["type"] == "string") return {"one", "two"};
  const int least = type.contains("minimum") ? static_cast<int>(std::ceil(type["minimum"].get<double>())) : 7;
  return {least, least + 1};
}

/// The command as it arrives on the other machine.
std::string arrived(const conversation::command& order) {
  conversation::command there = conversation::cut{};
  REQUIRE(actors::unpack(actors::pack(order), there));
  return actors::pack(there);
}

std::string opened_with(const json& config) {
  const auto frame = json{{"type", "session.init"}, {"payload", {{"config", config}}}}.dump();
  auto init = protocol::decode_session_init(*protocol::peek(frame), protocol::mode::audio);
  INFO(frame);
  REQUIRE(init);
  return arrived(protocol::opening(protocol::mode::audio, *init));
}

std::string asked_with(const json& choice) {
  json input{{"messages", {{{"role", "user"}, {"content", "Hello"}}}}};
  input.update(choice);
  const auto frame = json{{"type", "input.append"}, {"input", input}}.dump();
  auto asked = protocol::decode_chat_append(*protocol::peek(frame));
  INFO(frame);
  REQUIRE(asked);
  return arrived(conversation::submit_turn{*std::move(asked), 0, 1});
}

/// Checks that each of `options`, except those in `elsewhere`, changes the result of `with`.
template<class With>
void check_all(const json& options, const std::set<std::string>& elsewhere, With with) {
  const auto usual = with(json::object());
  for (const auto& [name, type] : options.items()) {
    if (elsewhere.contains(name)) continue;
    std::set<std::string> seen{usual};
    for (const auto& value : values_of(type)) seen.insert(with({{name, value}}));
    INFO(name);
    CHECK(seen.size() > 1);
  }
}

json schema() {
  std::ifstream file("tests/data/protocol.schema.json");
  return json::parse(file).at("$defs");
}

} // namespace

TEST_CASE("every option of a duplex session reaches the engine") {
  // Two are fixed, max_slice_nums belongs to each unit, three concern what is said on the wire, and one holds others.
  check_all(schema().at("duplexConfig").at("properties"),
            {"chunk_ms", "sample_rate", "max_slice_nums", "unit_responses", "listen_at_turn_end", "transcribe_input",
             "generation"},
            opened_with);
  const auto inner = schema().at("duplexConfig").at("properties").at("generation").at("anyOf").at(0).at("properties");
  check_all(inner, {}, [](const json& choice) { return opened_with({{"generation", choice}}); });
}

TEST_CASE("every option of a chat request reaches the engine") {
  const auto input = schema().at("client.input.append.chat").at("properties").at("input").at("properties");
  check_all(input.at("generation").at("anyOf").at(0).at("properties"), {}, [](const json& choice) {
    return asked_with({{"generation", choice}});
  });
  check_all(input, {"messages", "generation", "image", "tts", "audio"}, asked_with);
  const auto usual = asked_with(json::object());
  CHECK(asked_with({{"image", {{"max_slice_nums", 2}}}}) != usual);
  CHECK(asked_with({{"tts", {{"enabled", true}}}}) != usual);
}
