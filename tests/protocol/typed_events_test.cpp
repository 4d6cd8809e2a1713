#include "protocol/codec/event_writer.hpp"
#include "tests/protocol/refusals.hpp"
#include "tests/protocol/session_driver.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

// Clients inside the process say events, others frames: the session refuses the same of both, in the same words.
using namespace parley::protocol;
using namespace parley::protocol::test;

namespace {

void same(const char* mode, client_event event, const dom& frame) {
  const auto at = std::holds_alternative<init_event>(event) ? stage::connected : stage::active;
  INFO(frame.dump().substr(0, 300));
  const auto refused = wire(mode, at, frame);
  CHECK_FALSE(refused.empty());
  CHECK(typed(mode, at, std::move(event)) == refused);
}

pcm sound_of(std::size_t samples) {
  return std::make_shared<const std::vector<float>>(samples, 0.25f);
}

image_file file(std::string bytes) {
  return std::make_shared<const std::string>(std::move(bytes));
}

template<class... Parts>
dom list(const Parts&... parts) {
  dom out = dom::array();
  (out.push_back(parts), ...);
  return out;
}

dom init(const dom& payload) {
  return {{"type", "session.init"}, {"payload", payload}};
}

dom append(const dom& input) {
  return {{"type", "input.append"}, {"input", input}};
}

message says(content_item item) {
  message out;
  out.content.push_back(std::move(item));
  return out;
}

dom saying(const dom& item) {
  return {{"role", "user"}, {"content", list(item)}};
}

const dom hello = saying(dom{{"type", "text"}, {"text", "hello"}});

chat_append_event chat(std::vector<message> messages) {
  chat_append_event out;
  out.messages = std::move(messages);
  return out;
}

/// A turn that has nothing wrong with it but what `change` does.
chat_append_event chat_with(const std::function<void(chat_append_event&)>& change) {
  auto out = chat({says(text_item{"hello"})});
  change(out);
  return out;
}

dom chat_of(dom messages, dom more = dom::object()) {
  more["messages"] = std::move(messages);
  return append(more);
}

} // namespace

TEST_CASE("an event: the length of a prompt") {
  init_event event;
  event.has_system_prompt = true;
  event.system_prompt = std::string(32'769, 'x');
  same("audio", event, init({{"system_prompt", event.system_prompt}}));
}

TEST_CASE("an event: the numbers of a duplex session") {
  const auto with = [](const std::function<void(parley::conversation::duplex_options&)>& change) {
    init_event event;
    change(event.config);
    return event;
  };
  const auto check = [&](const char* name, const dom& value, auto change) {
    same("audio", with(change), init({{"config", {{name, value}}}}));
  };
  check("length_penalty", 0.05, [](auto& to) { to.sampling.length_penalty = 0.05; });
  check("force_listen_count", 101, [](auto& to) { to.force_listen_count = 101; });
  check("max_new_speak_tokens_per_chunk", 0, [](auto& to) { to.max_new_speak_tokens_per_chunk = 0; });
  check("temperature", 2.5, [](auto& to) { to.sampling.temperature = 2.5; });
  check("top_k", -1, [](auto& to) { to.sampling.top_k = -1; });
  check("top_p", 1.5, [](auto& to) { to.sampling.top_p = 1.5; });
  check("text_repetition_penalty", 0.5, [](auto& to) { to.sampling.repetition_penalty = 0.5; });
  check("text_repetition_window_size", 0, [](auto& to) { to.sampling.repetition_window = 0; });
  check("listen_prob_scale", -1.5, [](auto& to) { to.listen_prob_scale = -1.5; });
  check("listen_top_k", -1, [](auto& to) { to.listen_top_k = -1; });
  check("tts_temperature", 2.5, [](auto& to) { to.tts_temperature = 2.5; });
  check("basic_window_high_tokens", 0, [](auto& to) { to.window_high_tokens = 0; });
  check("basic_window_low_tokens", 0, [](auto& to) { to.window_low_tokens = 0; });
  same("audio", with([](auto& to) {
         to.window_high_tokens = 100;
         to.window_low_tokens = 200;
       }),
       init({{"config", {{"basic_window_high_tokens", 100}, {"basic_window_low_tokens", 200}}}}));
  init_event slices;
  slices.max_slice_nums = 10;
  same("video", slices, init({{"max_slice_nums", 10}}));
}

TEST_CASE("an event: the length of a voice") {
  for (const std::size_t samples : {3'999u, 960'001u}) {
    init_event event;
    event.voice = sound_of(samples);
    same("audio", event, init({{"voice", {{"ref_audio_base64", to_base64(bytes_of(*event.voice))}}}}));
    event.tts_voice = std::exchange(event.voice, nullptr);
    same("audio", event, init({{"voice", {{"tts_ref_audio_base64", to_base64(bytes_of(*event.tts_voice))}}}}));
  }
  const auto voice = sound_of(100);
  same("chat", chat_with([&](auto& to) {
         to.tts = true;
         to.tts_voice = voice;
       }),
       chat_of(list(hello), {{"tts", {{"enabled", true}, {"ref_audio_data", to_base64(bytes_of(*voice))}}}}));
}

TEST_CASE("an event: the functions that are offered") {
  using parley::conversation::tool;
  const auto offers = [](std::vector<tool> tools) {
    init_event event;
    event.offer.tools = std::move(tools);
    return event;
  };
  const dom one{{"type", "function"}, {"name", "f"}};
  same("chat", offers({{"not a name", "{}", ""}}),
       init({{"tools", list(dom{{"type", "function"}, {"name", "not a name"}})}}));
  same("chat", offers(std::vector<tool>(129, {"f", "{}", ""})), init({{"tools", std::vector<dom>(129, one)}}));
  const std::string long_words(66'000, 'x');
  same("chat", offers({{"f", long_words, ""}}),
       init({{"tools", list(dom{{"type", "function"}, {"name", "f"}, {"description", long_words}})}}));
  same("chat", chat_with([](auto& to) { to.tool_required = true; }),
       chat_of(list(hello), {{"tool_choice", "required"}}));
}

TEST_CASE("an event: the samples of an append") {
  append_event event;
  same("audio", event, append(dom::object()));
  for (const std::size_t samples : {0u, 160'001u}) {
    event.samples = sound_of(samples);
    same("audio", event, append({{"audio", to_base64(bytes_of(*event.samples))}}));
  }
  event.samples = sound_of(10);
  event.max_slice_nums = 0;
  same("audio", event, append({{"audio", sound(10)}, {"max_slice_nums", 0}}));
}

TEST_CASE("an event: the context of an append") {
  const auto with = [](std::vector<text_message> context) {
    append_event event;
    event.context = std::move(context);
    return event;
  };
  const auto check = [&](std::size_t messages, std::size_t bytes) {
    const std::string text(bytes, 'x');
    same("audio", with(std::vector<text_message>(messages, {role::user, text})),
         append({{"context", std::vector<dom>(messages, {{"role", "user"}, {"content", text}})}}));
  };
  check(33, 1);
  check(1, 0);
  check(1, 8193);
  check(3, 3000);
}

TEST_CASE("an event: the pictures of an append") {
  const auto check = [](const std::vector<std::string>& files) {
    append_event event;
    event.samples = sound_of(10);
    dom frames = dom::array();
    for (const auto& each : files) {
      event.frames.push_back(file(each));
      frames.push_back(to_base64(each));
    }
    same("video", event, append({{"audio", to_base64(bytes_of(*event.samples))}, {"video_frames", frames}}));
  };
  check(std::vector<std::string>(5, jpeg_file(8, 8)));
  check({"no picture at all"});
  check({jpeg_file(8, 8), "\x89PNG\r\n\x1a\n"});
  check({jpeg_file(8000, 8)});
  check({jpeg_file(8, 8, (4u << 20) + 1)});
  check({std::string("\xff\xd8\xff\xd9\0\0", 6)});
}

TEST_CASE("an event: what a chat's append may hold") {
  using std::vector;
  const dom text{{"type", "text"}, {"text", "x"}}, picture{{"type", "image"}, {"data", jpeg(8, 8)}};
  const auto image = file(jpeg_file(8, 8));
  same("chat", chat({}), chat_of(dom::array()));
  same("chat", chat(vector(257, says(text_item{"x"}))), chat_of(vector<dom>(257, saying(text))));
  message many;
  many.content.assign(1025, text_item{"x"});
  same("chat", chat({many}), chat_of(list(dom{{"role", "user"}, {"content", vector<dom>(1025, text)}})));
  same("chat", chat({message{}}), chat_of(list(dom{{"role", "user"}, {"content", dom::array()}})));
  many.content.assign(513, image_item{image});
  same("chat", chat({many}), chat_of(list(dom{{"role", "user"}, {"content", vector<dom>(513, picture)}})));
  const std::string long_text((1u << 20) + 1, 'x');
  same("chat", chat({says(text_item{long_text})}), chat_of(list(saying({{"type", "text"}, {"text", long_text}}))));
  const auto half = sound_of(16'000 * 411);
  CHECK(typed("chat", stage::active, chat({says(audio_item{half}), says(audio_item{half})})) ==
        "invalid_payload input.messages[1].content[0].data: more than 820 s of sound in one append\n");
}

TEST_CASE("an event: the media of a chat's append") {
  const auto gif = std::string("GIF89a and so on");
  same("chat", chat({says(image_item{file(gif)})}),
       chat_of(list(saying({{"type", "image"}, {"data", to_base64(gif)}}))));
  const auto huge = jpeg_file(8, 8, (4u << 20) + 1);
  same("chat", chat({says(image_item{file(huge)})}),
       chat_of(list(saying({{"type", "image"}, {"data", to_base64(huge)}}))));
  same("chat", chat({says(audio_item{sound_of(0)})}), chat_of(list(saying({{"type", "audio"}, {"data", ""}}))));
  same("chat", chat({says(audio_item{})}), chat_of(list(saying(dom{{"type", "audio"}}))));
  same("chat", chat({says(video_item{})}), chat_of(list(saying({{"type", "video"}, {"data", dom::array()}}))));
  same("chat", chat({says(video_item{{file(jpeg_file(8, 8))}, nullptr, 0})}),
       chat_of(list(saying({{"type", "video"}, {"data", list(jpeg(8, 8))}, {"stack_frames", 0}}))));
  same("chat", chat({says(video_item{{file(gif)}, nullptr, 1})}),
       chat_of(list(saying({{"type", "video"}, {"data", list(to_base64(gif))}}))));
}

TEST_CASE("an event: the numbers of a chat's append") {
  const auto check = [](const char* name, const dom& value, auto change) {
    same("chat", chat_with(change), chat_of(list(hello), {{"generation", {{name, value}}}}));
  };
  check("max_new_tokens", 4097, [](auto& to) { to.max_new_tokens = 4097; });
  check("length_penalty", 5.5, [](auto& to) { to.length_penalty = 5.5; });
  check("temperature", 2.5, [](auto& to) { to.temperature = 2.5; });
  check("top_k", -1, [](auto& to) { to.top_k = -1; });
  check("top_p", 1.5, [](auto& to) { to.top_p = 1.5; });
  check("stop", std::vector<std::string>(5, "x"), [](auto& to) { to.stop.assign(5, "x"); });
  check("stop", list(""), [](auto& to) { to.stop = {""}; });
  check("stop", list(std::string(257, 'x')), [](auto& to) { to.stop = {std::string(257, 'x')}; });
  same("chat", chat_with([](auto& to) { to.max_slice_nums = 10; }),
       chat_of(list(hello), {{"image", {{"max_slice_nums", 10}}}}));
  same("chat", chat_with([](auto& to) { to.scored = 21; }), chat_of(list(hello), {{"logprobs", 21}}));
  const std::string schema = R"({"type":"object","title":")" + std::string(66'000, 'x') + R"("})";
  same("chat", chat_with([&](auto& to) { to.answer_schema = schema; }),
       chat_of(list(hello), {{"response_format", {{"type", "json_schema"}, {"schema", dom::parse(schema)}}}}));
}

TEST_CASE("an event: calls and their results") {
  message result = says(text_item{"4"});
  result.from = role::tool;
  dom wire_result = saying(dom{{"type", "text"}, {"text", "4"}});
  wire_result["role"] = "tool";
  same("chat", chat({result}), chat_of(list(wire_result)));
  message calls;
  calls.from = role::assistant;
  calls.calls.assign(129, {"", "f", "{}"});
  const dom wire_call{{"name", "f"}, {"arguments", "{}"}};
  same("chat", chat({calls}),
       chat_of(list(dom{{"role", "assistant"}, {"tool_calls", std::vector<dom>(129, wire_call)}})));
  calls.calls.resize(1);
  same("chat", chat({calls, result, result}),
       chat_of(list(dom{{"role", "assistant"}, {"tool_calls", list(wire_call)}}, wire_result, wire_result)));
}

TEST_CASE("an event that does not suit the session or its state") {
  append_event units;
  units.samples = sound_of(16'000);
  same("chat", units, append({{"audio", sound(16'000)}}));
  same("audio", chat({says(text_item{"hello"})}), chat_of(list(hello)));
  CHECK(typed("audio", stage::connected, units) == wire("audio", stage::connected, append({{"audio", sound(10)}})));
  CHECK(typed("audio", stage::active, init_event{}) == wire("audio", stage::active, init(dom::object())));
}

TEST_CASE("an append that could not be made is refused for its own reason") {
  driver d(driver::options{"chat"});
  d.to_active();
  d.note(d.machine.on_event(tl::unexpected(error{error_code::invalid_payload, "input.tools: no list"}), d.now));
  CHECK(refusals(d.last) == "invalid_payload input.tools: no list\n");
  CHECK_FALSE(d.machine.took_input());
}

TEST_CASE("the sound of an event is what the wire would have made of it") {
  driver d(driver::options{"audio"});
  d.to_active();
  append_event event;
  std::vector<float> samples(unit_samples, 0.5f);
  samples[0] = 2;
  samples[1] = -2;
  samples[2] = std::numeric_limits<float>::quiet_NaN();
  event.samples = std::make_shared<const std::vector<float>>(std::move(samples));
  d.note(d.machine.on_event(event, d.now));
  const auto* const unit = std::get_if<submit_unit>(&d.last.at(0));
  REQUIRE(unit);
  CHECK(unit->samples->at(0) == 1);
  CHECK(unit->samples->at(1) == -1);
  CHECK(unit->samples->at(2) == 0);
  CHECK(unit->samples->at(3) == 0.5f);
}

TEST_CASE("a whole unit goes to the engine without being copied") {
  driver d(driver::options{"audio"});
  d.to_active();
  append_event event;
  event.samples = sound_of(unit_samples);
  const auto* const before = event.samples.get();
  d.note(d.machine.on_event(std::move(event), d.now));
  const auto* const unit = std::get_if<submit_unit>(&d.last.at(0));
  REQUIRE(unit);
  CHECK(unit->samples.get() == before);
}

TEST_CASE("an event begins and ends a session as its frame does") {
  for (const auto* mode : {"audio", "chat"}) {
    driver typed_one(driver::options{mode}), wire_one(driver::options{mode});
    const auto both = [&](client_event event) {
      const auto frame = written(event);
      const auto told = wire_one.frame(frame);
      CHECK(typed_one.note(typed_one.machine.on_event(std::move(event), typed_one.now)) == told);
    };
    typed_one.start();
    wire_one.start();
    both(init_event{});
    typed_one.grant();
    wire_one.grant();
    REQUIRE(typed_one.machine.init());
    CHECK(typed_one.machine.init()->system_prompt == wire_one.machine.init()->system_prompt);
    typed_one.opened();
    wire_one.opened();
    if (std::string_view(mode) == "chat") {
      both(chat({says(text_item{"hello"})}));
    } else {
      append_event event;
      event.samples = sound_of(unit_samples);
      event.force_listen = true;
      both(event);
    }
    both(close_event{"not a reason!"});
    CHECK(typed_one.machine.closed_reason() == wire_one.machine.closed_reason());
  }
}

TEST_CASE("recordings have the frame that a client would have sent") {
  init_event begin;
  begin.has_system_prompt = true;
  begin.system_prompt = "Be \"kind\".";
  begin.config.force_listen_count = 0;
  begin.voice = sound_of(2);
  CHECK(written(begin) == R"({"type":"session.init","payload":{"voice":{"ref_audio_base64":"AACAPgAAgD4="},)"
                          R"("system_prompt":"Be \"kind\".","config":{"force_listen_count":0}}})");
  begin.voice = nullptr;
  begin.has_system_prompt = false;
  begin.config.generate_audio = false;
  CHECK(written(begin) ==
        R"({"type":"session.init","payload":{"config":{"force_listen_count":0,"generate_audio":false}}})");
  CHECK(written(init_event{}) == R"({"type":"session.init","payload":{}})");
  append_event units;
  units.samples = sound_of(1);
  units.frames = {file("abc")};
  units.force_listen = true;
  CHECK(written(units) ==
        R"({"type":"input.append","input":{"audio":"AACAPg==","video_frames":["YWJj"],"force_listen":true}})");
  append_event context;
  context.context = {{role::system, "Now."}};
  CHECK(written(context) == R"({"type":"input.append","input":{"context":[{"role":"system","content":"Now."}]}})");
  auto turn = chat({says(text_item{"What is this?"}), says(image_item{file("abc")})});
  turn.messages[0].from = role::system;
  message calls;
  calls.from = role::assistant;
  calls.calls.push_back({"", "f", R"({"a":1})"});
  turn.messages.push_back(calls);
  turn.max_new_tokens = 1024;
  turn.tools_as_written = R"([{"name":"f"}])";
  turn.tool_choice_as_written = R"("auto")";
  turn.call_pieces = true;
  turn.max_slice_nums = 1;
  turn.tts = true;
  CHECK(
      written(turn) ==
      R"({"type":"input.append","input":{"messages":[{"role":"system","content":[{"type":"text","text":"What is this?"}]},)"
      R"({"role":"user","content":[{"type":"image","data":"YWJj"}]},)"
      R"({"role":"assistant","tool_calls":[{"name":"f","arguments":"{\"a\":1}"}]}],)"
      R"("generation":{"max_new_tokens":1024},"tools":[{"name":"f"}],"tool_choice":"auto","tool_call_deltas":true,)"
      R"("image":{"max_slice_nums":1},"tts":{"enabled":true}}})");
  CHECK(written(close_event{"user_stop"}) == R"({"type":"session.close","reason":"user_stop"})");
}
