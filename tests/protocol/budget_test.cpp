#include "protocol/openai/shared/budget.hpp"

#include "protocol/media/base64.hpp"
#include "tests/protocol/live_driver.hpp"
#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

#include <span>
#include <string>
#include <vector>

// What clients of OpenAI's dialects may have done for them.
using namespace parley::tests;
using nlohmann::json;
using parley::protocol::mode;
using std::chrono::milliseconds;
using std::chrono::seconds;
namespace openai = parley::protocol::openai;
namespace speech = parley::protocol::speech;
namespace rt = parley::protocol::openai::realtime;

namespace {

const json manual = {{"audio", {{"input", {{"format", {{"type", "audio/pcmu"}}}, {"turn_detection", nullptr}}}}}};
const json none_answered = {{"audio",
                             {{"input",
                               {{"format", {{"type", "audio/pcmu"}}},
                                {"turn_detection", {{"type", "server_vad"}, {"create_response", false}}}}}}}};

/// So many seconds of mu-law silence, as base64.
std::string mu_law(int seconds) {
  const std::string bytes(static_cast<std::size_t>(seconds) * 8000, '\xff');
  std::string out;
  parley::protocol::base64::append(std::as_bytes(std::span(bytes)), out);
  return out;
}

json append(std::string audio) {
  return {{"type", "input_audio_buffer.append"}, {"audio", std::move(audio)}};
}

json message(json content) {
  return {{"type", "message"}, {"role", "user"}, {"content", std::move(content)}};
}

json heard(int seconds) {
  return {{"type", "input_audio"}, {"audio", mu_law(seconds)}};
}

json text(std::size_t bytes) {
  return {{"type", "input_text"}, {"text", std::string(bytes, 'x')}};
}

std::string refusal_of(const std::vector<json>& events) {
  const auto error = last(events, "error");
  if (error.is_null()) return "";
  const auto param = error["error"].value("param", json());
  return error["error"]["code"].get<std::string>() + (param.is_null() ? "" : " " + param.get<std::string>());
}

} // namespace

TEST_CASE("one append may have five minutes of sound and 15 MiB, which is judged before it is decoded") {
  realtime_driver server;
  server.update(manual);
  CHECK(refusal_of(server.send(append(mu_law(300)))).empty());
  CHECK(last(server.send({{"type", "input_audio_buffer.commit"}}), "input_audio_buffer.committed").is_object());
  CHECK(refusal_of(server.send(append(mu_law(301)))) == "invalid_value audio");
  const auto told = last(server.send(append(std::string(301 * 8000 * 4 / 3 / 4 * 4, '!'))), "error")["error"];
  CHECK(told["message"].get<std::string>().find("300 s") != std::string::npos); // not that it isn't base64
  server.update({{"audio", {{"input", {{"format", {{"type", "audio/pcm"}, {"rate", 24000}}}}}}}});
  CHECK(refusal_of(server.send(append(std::string(15u << 20, 'A')))).empty()); // 245.76 s
  CHECK(refusal_of(server.send(append(std::string((15u << 20) + 4, 'A')))) == "invalid_value audio");
}

TEST_CASE("the sound of all items of one event is judged together, before it is decoded") {
  realtime_driver server;
  server.update(manual);
  CHECK(refusal_of(server.send({{"type", "conversation.item.create"}, {"item", message({heard(100), heard(200)})}}))
            .empty());
  CHECK(refusal_of(server.send({{"type", "conversation.item.create"}, {"item", message({heard(100), heard(201)})}})) ==
        "invalid_value item.content.audio");
  const json input = {message({heard(200)}), message({heard(101)})};
  CHECK(refusal_of(
            server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}, {"input", input}}}})) ==
        "invalid_value response.input.content.audio");
}

TEST_CASE("the text of all items of one event is judged together, as it is written and before it is copied") {
  realtime_driver server;
  server.update(manual);
  const auto create = [&](json content) {
    return refusal_of(server.send({{"type", "conversation.item.create"}, {"item", message(std::move(content))}}));
  };
  CHECK(create({text(1u << 20), text(2u << 20)}) == "conversation_too_long item");
  CHECK(create({text(1u << 20), text((2u << 20) + 1)}) == "invalid_value item.content.text");
  const auto respond = [&](json input) {
    return refusal_of(
        server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}, {"input", input}}}}));
  };
  json input = json::array();
  for (int i = 0; i < 7; ++i) input.push_back(message({text(450'000)}));
  CHECK(respond(input) == "invalid_value response.input.content.text");
  const json call = {
      {"type", "function_call"}, {"name", "f"}, {"call_id", "c"}, {"arguments", std::string((3u << 20) + 1, ' ')}};
  CHECK(respond({call}) == "invalid_value response.input.arguments");
}

TEST_CASE("names and ids are short") {
  realtime_driver server;
  server.update(manual);
  const std::string name(512, 'x'), longer(513, 'x');
  const auto told = [&](const json& event) { return refusal_of(server.send(event)); };
  const auto erase = [](const std::string& id) { return json{{"type", "conversation.item.delete"}, {"item_id", id}}; };
  CHECK(told(erase(name)) == "item_delete_invalid_item_id item_id");
  CHECK(told(erase(longer)) == "invalid_value item_id");
  CHECK(told({{"type", "conversation.item.create"}, {"item", message({text(1)})}, {"previous_item_id", longer}}) ==
        "invalid_value previous_item_id");
  CHECK(told({{"type", "conversation.item.create"},
              {"item", {{"type", "function_call"}, {"name", longer}, {"arguments", ""}}}}) ==
        "invalid_value item.name");
  CHECK(told({{"type", longer}}) == "invalid_value type");
}

TEST_CASE("of metadata its pairs are kept, not what stands between them") {
  namespace text = parley::protocol::json;
  openai::connection_budget budget(nullptr);
  const auto kept = [&](const std::string& metadata) -> std::string {
    const auto frame = R"({"type":"response.create","response":{"metadata":)" + metadata + "}}";
    const auto document = text::scan(frame);
    openai::event_sound sound(budget, {});
    const auto read = rt::read_client_event(text::root(document), {}, sound);
    return read ? std::get<rt::response_create>(*read).request.metadata : read.error().param;
  };
  CHECK(kept("{" + std::string(1u << 20, ' ') + R"("\u0061" : "\u0062\"\u00e9", "c":"")" + "\n}") ==
        R"({"a":"b\"é","c":""})");
  std::string escaped;
  for (int i = 0; i < 512; ++i) escaped += "\\ud83d\\ude00";
  CHECK(kept(R"({"a":")" + escaped + "\"}").size() == 8 + 4 * 512);
  CHECK(kept(R"({"a":")" + escaped + "a\"}") == "response.metadata");
  CHECK(kept(R"({"a":")" + std::string(1u << 20, 'a') + "\"}") == "response.metadata");
}

TEST_CASE("sound may come ten minutes ahead of time, and then no faster than it") {
  realtime_driver server;
  server.update(none_answered);
  for (int i = 0; i < 10; ++i) CHECK(refusal_of(server.send(append(mu_law(61)))).empty());
  CHECK(refusal_of(server.send(append(mu_law(61)))) == "rate_limit_exceeded audio");
  server.wait(seconds(6)); // 10 of the owner and 1.25 of the connection each second
  CHECK(refusal_of(server.send(append(mu_law(61)))).empty());
  CHECK(refusal_of(server.send(append(mu_law(61)))) == "rate_limit_exceeded audio");
  SECTION("what comes at the pace of a microphone is never too fast") {
    for (int i = 0; i < 100; ++i) {
      server.wait(seconds(1));
      CHECK(refusal_of(server.send(append(mu_law(1)))).empty());
    }
  }
  SECTION("sound in items counts as well") {
    CHECK(refusal_of(server.send({{"type", "conversation.item.create"}, {"item", message({heard(60)})}})) ==
          "rate_limit_exceeded item.content.audio");
  }
}

TEST_CASE("connections of an owner share what exceeds the pace, and none has to wait for its own") {
  const auto owner = std::make_shared<openai::owner_budget>();
  rt::machine_terms terms;
  terms.owner = owner;
  realtime_driver first(true, 1, terms), second(true, 2, terms), unrelated;
  for (auto* each : {&first, &second, &unrelated}) each->update(none_answered);
  CHECK(refusal_of(first.send(append(mu_law(300)))).empty());
  CHECK(refusal_of(first.send(append(mu_law(300)))).empty());
  CHECK(refusal_of(second.send(append(mu_law(60)))) == "rate_limit_exceeded audio");
  CHECK(refusal_of(second.send(append(mu_law(10)))).empty());
  CHECK(refusal_of(unrelated.send(append(mu_law(60)))).empty());
  CHECK_FALSE(owner->full(openai::budget_time(std::chrono::hours(1))));
  CHECK(owner->full(openai::budget_time(std::chrono::hours(2))));
}

TEST_CASE("in Live too, sound is judged before it is decoded, and may come so far ahead of time") {
  const json pcmu = {{"audio", {{"format", {{"type", "audio/pcmu"}, {"rate", 8000}}}}}};
  const auto hears = [](std::string audio) {
    return json{{"type", "session.input_audio.append"}, {"audio", std::move(audio)}};
  };
  live_driver server;
  server.begin(pcmu);
  CHECK(refusal_of(server.send(hears(mu_law(301)))) == "invalid_audio audio");
  for (int i = 0; i < 10; ++i) CHECK(refusal_of(server.send(hears(mu_law(61)))).empty());
  CHECK(refusal_of(server.send(hears(mu_law(61)))) == "rate_limit_exceeded audio");
}

TEST_CASE("what a Live session begins with is bounded as a conversation is") {
  const auto told = [](const json& input) {
    live_driver server;
    const json session = {
        {"model", "any"}, {"audio", {{"format", {{"type", "audio/pcmu"}, {"rate", 8000}}}}}, {"input", input}};
    return refusal_of(server.send({{"type", "session.start"}, {"session", session}}));
  };
  json many = json::array();
  for (int i = 0; i < 128; ++i) many.push_back(message({text(4000)}));
  CHECK(told(many).empty());
  many.push_back(message({text(1)}));
  CHECK(told(many) == "invalid_value session.input");
  CHECK(told({message({text(300u << 10)}), message({text(213u << 10)})}) == "invalid_value session.input");
  CHECK(told({message({heard(150)}), message({heard(150)})}).empty());
  CHECK(told({message({heard(150)}), message({heard(151)})}) == "invalid_value session.input.content.audio");
  json twins = {message({text(1)}), message({text(2)})};
  for (auto& each : twins) each["id"] = "the same";
  CHECK(told(twins).empty());
}

TEST_CASE("a Live session that has started reads no other start") {
  live_driver server;
  server.begin();
  const std::string wrong =
      R"({"type":"session.start","session":{"model":"any","input":[{"type":"message","role":"user",
      "content":[{"type":"input_audio","audio":"!"}]}]}})";
  CHECK(refusal_of(server.send_text(wrong)) == "session_already_started type");
}

TEST_CASE("responses that are asked for and cancelled open few sessions, and the next one is answered") {
  realtime_driver server;
  server.update(manual);
  for (int i = 0; i < 1000; ++i) {
    server.send({{"type", "response.create"}});
    server.send({{"type", "response.cancel"}});
  }
  CHECK(server.opened() == 72); // 8 of the connection, 64 of its owner
  CHECK(server.unused() == 72);
  server.send({{"type", "response.create"}});
  CHECK_FALSE(server.open());
  server.wait(milliseconds(100)); // the owner gets 16 a second
  REQUIRE(server.open() == mode::chat);
  server.grant();
  server.chat_delta("Yes.");
  CHECK(last(server.chat_done(), "response.done")["response"]["status"] == "completed");
  CHECK(server.unused() == 72);
}

TEST_CASE("what conversations hold is counted for their owner and for all, until nobody holds it") {
  constexpr std::size_t most = 10'000'000;
  const parley::base::byte_budget kept(most + most / 2, most);
  const auto connect = [&](const std::string& owner, std::uint64_t seed) {
    rt::machine_terms terms;
    terms.owner = std::make_shared<openai::owner_budget>(kept, owner);
    auto server = std::make_unique<realtime_driver>(true, seed, terms);
    server->update(manual);
    return server;
  };
  const auto create = [](realtime_driver& server, const std::string& id, const json& part) {
    auto item = message({part});
    item["id"] = id;
    return refusal_of(server.send({{"type", "conversation.item.create"}, {"item", item}}));
  };
  const json picture = {{"type", "input_image"},
                        {"image_url", "data:image/png;base64,iVBORw0KGgoA" + std::string(4'999'964, 'A')}}; // 5 MB
  auto first = connect("a", 1), second = connect("a", 2), unrelated = connect("b", 3);
  CHECK(create(*first, "p", picture).empty());
  SECTION("pictures") {
    CHECK(create(*second, "p", picture).empty());
    CHECK(create(*second, "q", picture) == "rate_limit_exceeded item.content.image_url");
    CHECK(create(*unrelated, "p", picture).empty());
    CHECK(create(*unrelated, "q", picture) == "rate_limit_exceeded item.content.image_url"); // of all
    first->send({{"type", "conversation.item.delete"}, {"item_id", "p"}});
    CHECK(create(*second, "q", picture).empty());
  }
  SECTION("sound in items, at 16 kHz and 16 bits, and long texts") {
    CHECK(create(*second, "s", heard(150)).empty());
    CHECK(create(*second, "t", text(200'003)) == "rate_limit_exceeded item.content");
    CHECK(create(*second, "t", text(200'002)).empty());
    CHECK(create(*second, "u", heard(1)) == "rate_limit_exceeded item.content.audio");
    second->send({{"type", "conversation.item.delete"}, {"item_id", "t"}});
    CHECK(create(*second, "u", heard(1)).empty());
  }
  SECTION("sound that waits to be committed, and what it becomes") {
    CHECK(refusal_of(second->send(append(mu_law(150)))).empty());
    CHECK(refusal_of(second->send(append(mu_law(7)))) == "rate_limit_exceeded audio");
    CHECK(refusal_of(second->send(append(mu_law(6)))).empty());
    const auto made = last(second->send({{"type", "input_audio_buffer.commit"}}), "conversation.item.added");
    CHECK(refusal_of(second->send(append(mu_law(7)))) == "rate_limit_exceeded audio");
    second->send({{"type", "conversation.item.delete"}, {"item_id", made["item"]["id"]}});
    CHECK(refusal_of(second->send(append(mu_law(150)))).empty());
    second->send({{"type", "input_audio_buffer.clear"}});
    CHECK(create(*second, "p", picture).empty());
  }
  SECTION("what a waiting response answers") {
    const auto respond = [&](realtime_driver& server) {
      return server.send(
          {{"type", "response.create"}, {"response", {{"conversation", "none"}, {"input", {message({picture})}}}}});
    };
    const auto made = last(respond(*second), "response.created");
    CHECK(refusal_of(respond(*second)) == "rate_limit_exceeded response.input.content.image_url");
    second->send({{"type", "response.cancel"}, {"response_id", made["response"]["id"]}});
    CHECK(refusal_of(respond(*second)).empty());
  }
  first.reset();
  second.reset();
  unrelated.reset();
  CHECK(kept.take("a", most));
}

TEST_CASE("responses may not be asked for without end, whether or not they are made") {
  realtime_driver server;
  server.update(manual);
  const auto asks = [&](int most) {
    for (int i = 0; i < most; ++i) {
      if (!refusal_of(server.send({{"type", "response.create"}})).empty()) return i;
      server.send({{"type", "response.cancel"}});
    }
    return most;
  };
  CHECK(asks(2000) == 256 + 1024); // of the connection and of its owner
  CHECK(refusal_of(server.send({{"type", "response.create"}})) == "rate_limit_exceeded");
  server.wait(seconds(1));
  CHECK(asks(100) == 4 + 32);
}

TEST_CASE("strict schemas are checked as fast as a connection and its owner may have it, and the same ones once") {
  const auto owner = std::make_shared<openai::owner_budget>();
  rt::machine_terms terms;
  terms.owner = owner;
  realtime_driver first(true, 1, terms), second(true, 2, terms), unrelated;
  const auto tools = [](int number) {
    const json limits = {{"type", "string"}, {"pattern", "^(a|b)*a(a|b){9}$"}};
    return json{{"tools",
                 {{{"type", "function"},
                   {"name", "f" + std::to_string(number)},
                   {"strict", true},
                   {"parameters",
                    {{"type", "object"},
                     {"properties", {{"a", limits}}},
                     {"required", {"a"}},
                     {"additionalProperties", false}}}}}}};
  };
  int checked = 0;
  const auto update = [&](realtime_driver& server) { return refusal_of(server.update(tools(++checked))); };
  while (checked < 2000 && update(first).empty()) {
  }
  INFO(checked);
  CHECK(checked > 20);
  CHECK(checked < 2000);
  CHECK(update(first) == "rate_limit_exceeded");
  CHECK(update(unrelated).empty());
  CHECK(update(second).empty()); // of its own
  second.update(tools(0));
  for (int i = 0; i < 20; ++i) {
    CHECK(refusal_of(second.update(tools(0))).empty()); // they have been checked
    CHECK(refusal_of(second.update({{"tool_choice", "auto"}})).empty());
  }
  int own = 0;
  while (own < 2000 && update(second).empty()) ++own;
  CHECK(own < checked);
  first.wait(seconds(10));
  CHECK(update(first).empty());
}

TEST_CASE("a Live session's delegated tools are checked in one budget, and are at most 128") {
  const auto told = [](live_driver& server, int tools, const json& pattern) {
    json all = json::array();
    for (int i = 0; i < tools; ++i)
      all.push_back({{"type", "function"},
                     {"name", "f"},
                     {"strict", true},
                     {"parameters",
                      {{"type", "object"},
                       {"properties", {{"a", {{"type", "string"}, {"pattern", pattern}}}}},
                       {"required", {"a"}},
                       {"additionalProperties", false}}}});
    return refusal_of(server.send(
        {{"type", "session.update"},
         {"session", {{"delegation", {{"type", "responses"}, {"responses", {{"tools", std::move(all)}}}}}}}}));
  };
  live_driver server;
  server.begin();
  CHECK(told(server, 128, "^a$").empty());
  CHECK(told(server, 129, "^a$") == "invalid_value session.delegation.responses.tools");
  const auto refused = told(server, 128, "^(a|b)*a(a|b){9}$");
  INFO(refused);
  CHECK(refused.starts_with("invalid_value session.delegation.responses.tools["));
}

TEST_CASE("a response that is cancelled while it is made has used its session") {
  realtime_driver server;
  server.update(manual);
  server.send({{"type", "response.create"}});
  server.grant();
  server.send({{"type", "response.cancel"}});
  CHECK(server.opened() == 1);
  CHECK(server.unused() == 0);
  server.send({{"type", "response.create"}});
  server.inner_closes(); // the server's doing, not the client's
  CHECK(server.unused() == 0);
}

TEST_CASE("a response beside one that is played waits for its session too") {
  realtime_driver server;
  server.update({{"audio", {{"input", {{"turn_detection", {{"type", "server_vad"}}}}}}}});
  for (int i = 0; i < 72; ++i) {
    server.send({{"type", "response.create"}});
    if (i < 71) server.send({{"type", "response.cancel"}});
  }
  REQUIRE(server.open());
  server.grant();
  server.chat_delta("One two three.", 3);
  server.chat_done();
  server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}}}});
  CHECK_FALSE(server.open());
  server.wait(milliseconds(100));
  REQUIRE(server.open() == mode::chat);
  server.grant();
  server.chat_delta("beside", 0.1);
  CHECK(last(server.chat_done(), "response.done")["response"]["conversation_id"].is_null());
  server.wait(seconds(4));
  server.seen().check_quiet();
}

TEST_CASE("a client that may start no more sessions gets no response, and is told why") {
  bool left = true;
  rt::machine_terms terms;
  terms.may_start = [&](auto) { return left; };
  realtime_driver server(true, 1, terms);
  server.update(manual);
  server.send({{"type", "response.create"}});
  left = false;
  for (int i = 0; i < 3; ++i) server.send({{"type", "response.create"}, {"response", {{"conversation", "none"}}}});
  server.grant();
  server.chat_delta("Yes.");
  const auto after = server.chat_done();
  std::vector<std::string> ends;
  for (const auto& each : after)
    if (each["type"] == "response.done") ends.push_back(each["response"]["status"]);
  CHECK(ends == std::vector<std::string>{"completed", "failed", "failed", "failed"});
  CHECK(last(after, "response.done")["response"]["status_details"]["error"]["code"] == "rate_limit_exceeded");
  CHECK(server.opened() == 1);
  left = true;
  server.send({{"type", "response.create"}});
  CHECK(server.open() == mode::chat);
}

TEST_CASE("without a session to start, a user who speaks is told so") {
  rt::machine_terms terms;
  terms.may_start = [](auto) { return false; };
  realtime_driver server(true, 1, terms);
  server.hear(tone(1));
  const auto after = server.hear(quiet(1));
  CHECK(server.opened() == 0);
  CHECK(last(after, "response.done")["response"]["status"] == "failed");
}

TEST_CASE("a small event does not make the server repeat much, again and again") {
  realtime_driver server;
  server.update({{"instructions", std::string(32'000, 'x')}});
  const auto repeated = [&](const json& event) {
    std::size_t bytes = 0;
    for (int i = 0; i < 30; ++i)
      for (const auto& each : server.send(event)) bytes += each.dump().size();
    return bytes;
  };
  SECTION("the session") {
    const json small = {{"type", "session.update"}, {"session", {{"type", "realtime"}}}};
    for (int i = 0; i < 70; ++i) server.send(small); // 65 are 2 MiB
    CHECK(repeated(small) < 64'000);
    CHECK(refusal_of(server.send(small)) == "rate_limit_exceeded");
    server.wait(seconds(1));
    CHECK(last(server.send(small), "session.updated").is_object());
  }
  SECTION("an item") {
    const auto id =
        server.send({{"type", "conversation.item.create"}, {"item", message({text(500'000)})}}).at(0)["item"]["id"];
    const json small = {{"type", "conversation.item.retrieve"}, {"item_id", id}};
    for (int i = 0; i < 4; ++i) CHECK(last(server.send(small), "conversation.item.retrieved").is_object());
    CHECK(repeated(small) < 64'000);
    server.wait(seconds(8));
    CHECK(last(server.send(small), "conversation.item.retrieved").is_object());
  }
}

TEST_CASE("a conversation of the server's own items stays bounded") {
  realtime_driver server;
  server.update(manual);
  std::vector<std::string> made;
  const std::string tenth = mu_law(1).substr(0, 1068); // 801 samples
  for (int i = 0; i < 1100; ++i) {
    server.send(append(tenth));
    made.push_back(last(server.send({{"type", "input_audio_buffer.commit"}}), "conversation.item.added")["item"]["id"]);
    server.wait(milliseconds(100));
  }
  const auto retrieved = [&](std::size_t at) {
    return last(server.send({{"type", "conversation.item.retrieve"}, {"item_id", made[at]}}),
                "conversation.item.retrieved");
  };
  CHECK(retrieved(1100 - 1025).is_null());
  CHECK(retrieved(1100 - 1024).is_object());
  CHECK(retrieved(1099).is_object());
}
