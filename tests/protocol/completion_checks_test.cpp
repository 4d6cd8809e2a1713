#include "protocol/codec/event_writer.hpp"
#include "protocol/media/wav.hpp"
#include "protocol/openai/completions/completion_turn.hpp"
#include "protocol/openai/completions/request.hpp"
#include "tests/protocol/refusals.hpp"
#include "tests/protocol/session_driver.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

// A completion asks its session in events. What the session refuses of a turn in a frame, and how it understands one, holds for
// that of a completion, too.
using namespace parley::protocol;
using namespace parley::protocol::test;

namespace {

result<client_event> turn_of(const dom& body) {
  const auto request = read_openai_request(body.dump());
  if (!request) FAIL(request.error().message);
  auto made = completion_turn(request->prompt, 0).make();
  if (!made) return tl::unexpected(std::move(made.error()));
  return *std::move(made);
}

dom with(dom more, const char* name, const dom& value) {
  more[name] = value;
  return more;
}

dom completion(const dom& messages, dom more = dom::object()) {
  return with(std::move(more), "messages", messages);
}

/// The same in the session's own words, as long as no member is called otherwise.
dom frame(const dom& messages, dom more = dom::object()) {
  if (more.contains("stop")) {
    more["generation"]["stop"] = more["stop"];
    more.erase("stop");
  }
  more["generation"]["max_new_tokens"] = 1024;
  more["streaming"] = false;
  return {{"type", "input.append"}, {"input", with(std::move(more), "messages", messages)}};
}

dom list(std::vector<dom> parts) {
  dom out = dom::array();
  for (auto& each : parts) out.push_back(std::move(each));
  return out;
}

dom user(const dom& content) {
  return {{"role", "user"}, {"content", content}};
}

const dom hello = user("hello");

void same(const dom& body, const dom& frame) {
  INFO(body.dump().substr(0, 300));
  const auto refused = wire("chat", stage::active, frame);
  CHECK_FALSE(refused.empty());
  CHECK(typed("chat", stage::active, turn_of(body)) == refused);
}

void same_messages(const dom& messages) {
  same(completion(messages), frame(messages));
}

void same_options(const dom& more) {
  same(completion(list({hello}), more), frame(list({hello}), more));
}

dom picture(const std::string& data) {
  return {{"type", "image_url"}, {"image_url", {{"url", "data:image/jpeg;base64," + data}}}};
}

dom sound(const std::string& data) {
  return {{"type", "input_audio"}, {"input_audio", {{"data", data}, {"format", "wav"}}}};
}

dom wire_picture(const std::string& data) {
  return {{"type", "image"}, {"data", data}};
}

dom wire_sound(const std::string& data) {
  return {{"type", "audio"}, {"data", data}};
}

dom text(const std::string& words) {
  return {{"type", "text"}, {"text", words}};
}

void same_parts(std::vector<dom> parts, std::vector<dom> wire_parts) {
  same(completion(list({user(list(std::move(parts)))})), frame(list({user(list(std::move(wire_parts)))})));
}

std::string seconds_of(std::size_t seconds) {
  return to_base64(write_wav(std::vector<float>(seconds * 1000), 1000));
}

dom calling(const dom& calls) {
  return {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", calls}};
}

dom call(const dom& id) {
  return {{"id", id}, {"type", "function"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}};
}

dom result_of(const dom& id) {
  return {{"role", "tool"}, {"tool_call_id", id}, {"content", "4"}};
}

dom tool(const std::string& name, const dom& parameters = {{"type", "object"}}, bool strict = false) {
  return {{"type", "function"}, {"function", {{"name", name}, {"parameters", parameters}, {"strict", strict}}}};
}

} // namespace

TEST_CASE("a completion: the number of messages, and that each says something") {
  same_messages(dom::array());
  same_messages(list(std::vector<dom>(257, hello)));
  same_messages(list({user(dom::array())}));
}

TEST_CASE("a completion: the budget of a chat") {
  same_parts(std::vector<dom>(1025, text("x")), std::vector<dom>(1025, text("x")));
  same_parts(std::vector<dom>(513, picture(jpeg(8, 8))), std::vector<dom>(513, wire_picture(jpeg(8, 8))));
  const std::string long_text((1u << 20) + 1, 'x');
  same_messages(list({user(long_text)}));
  same_parts({text(long_text)}, {text(long_text)});
  // As it is written, not as it reads.
  const std::string quotes((1u << 19) + 1, '"');
  same_messages(list({user(quotes)}));
  same(completion(list({dom{{"role", "assistant"}, {"refusal", quotes}}, hello})),
       frame(list({dom{{"role", "assistant"}, {"content", quotes}}, hello})));
  auto wordy = call("a");
  wordy["function"]["arguments"] = long_text;
  same_messages(list({calling(list({wordy})), result_of("a")}));
}

TEST_CASE("a completion: seconds of sound") {
  const auto much = seconds_of(821), half = seconds_of(411);
  same_parts({sound(much)}, {wire_sound(much)});
  same_parts({sound(half), sound(half)}, {wire_sound(half), wire_sound(half)});
}

TEST_CASE("a completion: the media themselves") {
  for (const std::string& file : {std::string("GIF89a and so on"), std::string("no picture at all"), jpeg_file(8000, 8),
                                  jpeg_file(8, 8, (4u << 20) + 1)})
    same_parts({picture(to_base64(file))}, {wire_picture("data:image/jpeg;base64," + to_base64(file))});
  for (const char* data : {"", "?", "AAA"})
    same_parts({picture(data)}, {wire_picture("data:image/jpeg;base64," + std::string(data))});
  for (const std::string& data : {std::string(), std::string("?"), std::string("AAAAAAA="),
                                  to_base64("RIFF....WAVEfmt"), to_base64("OggS and no sound")})
    same_parts({sound(data)}, {wire_sound(data)});
}

TEST_CASE("a completion: where an answer ends") {
  for (const dom& stop : {dom(std::vector<std::string>(5, "x")), dom(""), dom(std::string(257, 'x')),
                          dom(list({"a", 1})), dom(list({"a", ""})), dom(1)})
    same_options({{"stop", stop}});
}

TEST_CASE("a completion: functions that are offered") {
  const auto check = [](const dom& tools, const dom& choice = nullptr) {
    same_options({{"tools", tools}, {"tool_choice", choice}});
  };
  check(list({tool("not a name")}));
  check(list(std::vector<dom>(129, tool("f"))));
  check(list({tool(std::string(66'000, 'f'))}));
  check(list({tool("f", {{"type", "string"}})}));
  check(list({tool("f", {{"type", "object"}, {"not", {{"type", "string"}}}}, true)}));
  check("f");
  check(list({1}));
  check(nullptr, "required");
  check(list({tool("f")}), "g");
  check(list({tool("f")}), {{"type", "function"}, {"function", {{"name", "g"}}}});
}

TEST_CASE("a completion: calls and their results") {
  same_messages(list({calling(list(std::vector<dom>(129, call("a"))))}));
  same_messages(list({calling(list({1}))}));
  same_messages(list({calling(list({dom{{"id", "a"}}}))}));
  same_messages(list({calling(list({call(std::string(257, 'a'))})), hello}));
  same_messages(list({result_of("a")}));
  same_messages(list({calling(list({call("a")})), result_of("b")}));
  same_messages(list({calling(list({call("a")})), result_of(std::string(257, 'a'))}));
  same_messages(list({calling(list({call("a")})), result_of("a"), result_of("a")}));
  same_messages(list({calling(list({call("a"), call("b")})), result_of("b")}));
}

TEST_CASE("a completion: the form of its answer") {
  const auto check = [](const dom& format) { same_options({{"response_format", format}}); };
  const auto schema = [](const dom& of, bool strict) {
    return dom{{"type", "json_schema"}, {"json_schema", {{"name", "n"}, {"strict", strict}, {"schema", of}}}};
  };
  check("json_object");
  check({{"type", "xml"}});
  check({{"type", "json_schema"}});
  check(schema("object", false));
  check(schema({{"type", "string"}}, false));
  check(schema({{"type", "object"}, {"title", std::string(66'000, 'x')}}, false));
  check(schema({{"type", "object"}, {"not", {{"type", "string"}}}}, true));
}

TEST_CASE("a completion: schemas that are too much work together, which are checked with the first answer") {
  std::vector<dom> tools;
  for (int i = 0; i < 100; ++i)
    tools.push_back(tool("f" + std::to_string(i),
                         {{"type", "object"}, {"properties", {{"a", {{"pattern", "[ab]*a[ab]{8}"}}}}}}, true));
  same_options({{"tools", tools}});
  const auto request = read_openai_request(completion(list({hello}), {{"tools", tools}, {"n", 2}}).dump());
  REQUIRE(request);
  CHECK_FALSE(completion_turn(request->prompt, 0).make());
  CHECK(completion_turn(request->prompt, 1).make());
}

namespace {

/// What the engine is asked, in words.
std::string asked(const effects& made) {
  for (const auto& each : made) {
    const auto* const turn = std::get_if<submit_turn>(&each);
    if (turn == nullptr) continue;
    chat_append_event shown;
    static_cast<parley::conversation::turn_request&>(shown) = *turn;
    auto out = written(shown) + "\n" + shown.answer_schema + "\n" + shown.tool_name + (shown.tool_required ? "!" : "");
    for (const auto& each_tool : shown.tools)
      out += "\n" + each_tool.name + " " + each_tool.signature + " " + each_tool.parameters;
    return out;
  }
  return "nothing: " + refusals(made);
}

std::string asked(const char* mode, const std::function<void(driver&)>& say) {
  driver d(driver::options{mode});
  d.to_active();
  say(d);
  return asked(d.last);
}

void means(const dom& body, const dom& frame) {
  INFO(body.dump().substr(0, 300));
  const auto wanted = asked("chat", [&](driver& d) { d.frame(frame.dump()); });
  const bool taken = !wanted.starts_with("nothing");
  CHECK(taken);
  const auto got = asked("chat", [&](driver& d) { d.note(d.machine.on_event(turn_of(body), d.now)); });
  const bool as_the_frame = got == wanted; // both may be very long
  INFO(got.substr(0, 1000));
  CHECK(as_the_frame);
}

} // namespace

TEST_CASE("a completion means what the same frame means") {
  means(completion(list({hello})), frame(list({hello})));
  const auto wav = to_base64(write_wav(std::vector<float>(4800, 0.25f), 24'000)), small = jpeg(8, 8);
  const dom more{
      {"stop", list({"a", "b\n"})},
      {"tools", list({tool("f", {{"type", "object"}, {"properties", {{"a", {{"type", "integer"}}}}}}, true)})},
      {"tool_choice", "required"},
      {"response_format", {{"type", "json_object"}}}};
  const auto talk = [&](const dom& parts) {
    return list({dom{{"role", "system"}, {"content", "be \"kind\""}}, user(parts),
                 calling(list({call("a"), call("b")})), result_of("b"), result_of("a"), user("\xC3\xA9\n")});
  };
  means(completion(talk(list({text("a\tb"), picture(small), sound(wav)})), more),
        frame(talk(list({text("a\tb"), wire_picture(small), wire_sound(wav)})), more));
  auto numbers = frame(list({hello}));
  numbers["input"]["generation"] = {
      {"max_new_tokens", 4096}, {"temperature", 0.5}, {"top_p", 0.25}, {"top_k", 7}, {"seed", -1}};
  numbers["input"]["logprobs"] = 3;
  means(completion(list({hello}), {{"max_tokens", 5000},
                                   {"temperature", 0.5},
                                   {"top_p", 0.25},
                                   {"top_k", 7},
                                   {"seed", -1},
                                   {"logprobs", true},
                                   {"top_logprobs", 3}}),
        numbers);
}

TEST_CASE("a completion that uses all that a chat may hold is taken") {
  std::vector<dom> messages(255, hello);
  messages.push_back(user(list(std::vector<dom>(1024, text("x")))));
  means(completion(list(messages)), frame(list(messages)));
  // Their list is written in less than 64 KiB, and shown to the model in more.
  dom names = dom::array();
  for (int i = 0; i < 12'000; ++i) names.push_back(i);
  const dom tools{{"tools", list({tool("f", {{"type", "object"}, {"description", names}})})}};
  means(completion(list({hello}), tools), frame(list({hello}), tools));
}
