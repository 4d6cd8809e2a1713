#include "protocol/codec/client_codec.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

using namespace parley::protocol;
namespace test = parley::protocol::test;
using test::dom;

namespace {

result<chat_append_event> chat(dom input) {
  auto text = dom{{"type", "input.append"}, {"input", input}}.dump();
  auto from = peek(text);
  REQUIRE(from);
  return decode_chat_append(*from);
}

const dom hello{{"role", "user"}, {"content", "Hello"}};

/// Decodes a request that says hello, with one more field.
result<chat_append_event> with(const std::string& name, dom value) {
  return chat({{"messages", {hello}}, {name, value}});
}

/// Decodes one user message with that content.
result<chat_append_event> content(dom list) {
  return chat({{"messages", {{{"role", "user"}, {"content", list}}}}});
}

std::string refusal(const result<chat_append_event>& decoded) {
  if (decoded) return "accepted";
  return std::string(traits(decoded.error().code).wire) + " " + decoded.error().message;
}

} // namespace

TEST_CASE("chat: one message gives the defaults") {
  auto out = chat({{"messages", {hello}}});
  REQUIRE(out);
  REQUIRE(out->messages.size() == 1);
  CHECK(out->messages[0].from == role::user);
  REQUIRE(out->messages[0].content.size() == 1);
  CHECK(std::get<text_item>(out->messages[0].content[0]).text == "Hello");
  CHECK(out->streaming);
  CHECK(out->max_new_tokens == 256);
  CHECK(out->length_penalty == 1.1);
  CHECK_FALSE(out->temperature);
  CHECK_FALSE(out->top_k);
  CHECK_FALSE(out->top_p);
  CHECK_FALSE(out->do_sample);
  CHECK_FALSE(out->seed);
  CHECK_FALSE(out->max_slice_nums);
  CHECK_FALSE(out->omni_mode);
  CHECK_FALSE(out->use_tts_template);
  CHECK_FALSE(out->enable_thinking);
  CHECK_FALSE(out->tts);
  CHECK_FALSE(out->tts_voice);
}

TEST_CASE("chat: all fields") {
  auto out = chat({{"messages", {hello}},
                   {"streaming", false},
                   {"generation",
                    {{"max_new_tokens", 64},
                     {"length_penalty", 0.5},
                     {"temperature", 0.25},
                     {"top_k", 3},
                     {"top_p", 0.5},
                     {"do_sample", false},
                     {"seed", 9},
                     {"stop", {"a", "\n\n"}}}},
                   {"image", {{"max_slice_nums", 2}}},
                   {"logprobs", 3},
                   {"tool_call_deltas", true},
                   {"omni_mode", true},
                   {"enable_thinking", true},
                   {"tts", {{"enabled", true}, {"ref_audio_data", test::sound(8000)}}}});
  REQUIRE(out);
  CHECK_FALSE(out->streaming);
  CHECK(out->max_new_tokens == 64);
  CHECK(out->length_penalty == 0.5);
  CHECK(out->temperature == 0.25);
  CHECK(out->top_k == 3);
  CHECK(out->top_p == 0.5);
  CHECK(out->do_sample == false);
  CHECK(out->seed == 9u);
  CHECK(out->stop == std::vector<std::string>{"a", "\n\n"});
  CHECK(out->max_slice_nums == 2);
  CHECK(out->scored == 3);
  CHECK(out->call_pieces);
  CHECK(out->omni_mode);
  CHECK(out->enable_thinking);
  CHECK(out->tts);
  CHECK(out->use_tts_template); // implied
  CHECK(out->tts_voice->size() == 8000);
}

TEST_CASE("chat: null counts as absent") {
  for (std::string name :
       {"streaming", "generation", "image", "omni_mode", "use_tts_template", "enable_thinking", "tts"})
    CHECK(with(name, nullptr));
  CHECK(with("generation", {{"max_new_tokens", nullptr},
                            {"length_penalty", nullptr},
                            {"stop", nullptr},
                            {"temperature", nullptr},
                            {"top_k", nullptr},
                            {"top_p", nullptr},
                            {"do_sample", nullptr},
                            {"seed", nullptr}}));
  CHECK(with("image", {{"max_slice_nums", nullptr}}));
  CHECK(with("tts", {{"enabled", nullptr}, {"ref_audio_data", nullptr}}));
}

TEST_CASE("chat: types and ranges") {
  struct row {
    std::string object, key;
    std::vector<dom> good, bad;
  };
  const std::vector<row> rows{
      {"", "streaming", {true, false}, {0, "true", dom::object()}},
      {"", "omni_mode", {true, false}, {1, "x"}},
      {"", "use_tts_template", {true, false}, {1, "x"}},
      {"", "enable_thinking", {true, false}, {1, "x"}},
      {"", "generation", {dom::object()}, {1, "x", dom::array()}},
      {"", "image", {dom::object()}, {1, "x", dom::array()}},
      {"", "tts", {dom::object()}, {true, "x", dom::array()}},
      {"generation", "max_new_tokens", {1, 4096, 64.0}, {0, 4097, -1, 1.5, "64", true}},
      {"generation", "length_penalty", {0.1, 5, 1.1}, {0.05, 5.1, "1"}},
      {"generation", "temperature", {0, 2}, {-0.1, 2.1, "x"}},
      {"generation", "top_k", {0, 100}, {-1, 1.5}},
      {"generation", "top_p", {0, 1}, {-0.1, 1.1}},
      {"generation", "do_sample", {true, false}, {1, "x"}},
      {"generation", "seed", {0, -5}, {0.5, "x"}},
      {"image", "max_slice_nums", {1, 9}, {0, 10, "1"}},
      {"tts", "enabled", {true, false}, {1, "x"}},
      {"tts", "ref_audio_data", {"unread"}, {1, dom::array()}},
  };
  for (auto& [object, key, good, bad] : rows) {
    auto path = "input." + (object.empty() ? key : object + "." + key);
    CAPTURE(path);
    auto decode = [&](const dom& value) { return object.empty() ? with(key, value) : with(object, {{key, value}}); };
    for (auto& value : good) {
      CAPTURE(value);
      CHECK(refusal(decode(value)) == "accepted");
    }
    for (auto& value : bad) {
      CAPTURE(value);
      CHECK_THAT(refusal(decode(value)), Catch::StartsWith("invalid_payload " + path + ": "));
    }
  }
}

TEST_CASE("chat: a voice is decoded when it will be heard") {
  CHECK(refusal(with("tts", {{"enabled", true}, {"ref_audio_data", "unread"}})) ==
        "invalid_payload input.tts.ref_audio_data: not base64: 6 characters are no multiple of 4");
  CHECK_FALSE(with("tts", {{"enabled", false}, {"ref_audio_data", test::sound(8000)}})->tts_voice);
  CHECK(with("tts", {{"enabled", true}, {"ref_audio_data", "data:audio/wav;base64," + test::wav_voice()}})
            ->tts_voice->size() == 8000);
  CHECK(with("use_tts_template", true)->use_tts_template);
}

TEST_CASE("chat: where the answer stops") {
  const auto stops = [](const dom& stop) { return with("generation", {{"stop", stop}})->stop; };
  const auto refused = [](const dom& stop) { return refusal(with("generation", {{"stop", stop}})); };
  CHECK(stops("x") == std::vector<std::string>{"x"});
  CHECK(stops(dom::array()).empty());
  CHECK(stops(std::string(256, 'x')).front().size() == 256);
  CHECK(refused("") == "invalid_payload input.generation.stop: not 1 to 256 bytes");
  CHECK(refused({"x", std::string(257, 'x')}) == "invalid_payload input.generation.stop[1]: not 1 to 256 bytes");
  CHECK(refused({"a", "b", "c", "d", "e"}) == "invalid_payload input.generation.stop: more than four");
  CHECK(refused({"a", 1}) == "invalid_payload input.generation.stop[1]: not a string");
}

TEST_CASE("chat: messages") {
  CHECK(refusal(chat(dom::object())) == "missing_field input.messages: required");
  CHECK(refusal(chat({{"messages", nullptr}})) == "invalid_payload input.messages: not an array");
  CHECK(refusal(chat({{"messages", "x"}})) == "invalid_payload input.messages: not an array");
  CHECK(refusal(chat({{"messages", dom::array()}})) == "invalid_payload input.messages: empty");
  CHECK(refusal(chat({{"messages", {1}}})) == "invalid_payload input.messages[0]: not an object");
  CHECK(refusal(chat({{"messages", {{{"content", "x"}}}}})) == "missing_field input.messages[0].role: required");
  CHECK(refusal(chat({{"messages", {{{"role", "user"}}}}})) == "missing_field input.messages[0].content: required");
  CHECK(refusal(chat({{"messages", {hello, {{"role", "function"}, {"content", "x"}}}}})) ==
        "invalid_payload input.messages[1].role: none of system, user, assistant, tool");
  CHECK(refusal(chat({{"messages", {hello, {{"role", 1}, {"content", "x"}}}}})) ==
        "invalid_payload input.messages[1].role: not a string");
  CHECK(refusal(chat({{"messages", {hello, {{"role", "tool"}, {"content", "x"}}}}})) ==
        "invalid_payload input.messages[1].role: messages with role 'tool' must be a response to a preceding message "
        "with "
        "'tool_calls'");
  CHECK(refusal(chat({{"messages", {{{"role", "user"}, {"content", nullptr}}}}})) ==
        "invalid_payload input.messages[0].content: neither a string nor a list");
  CHECK(refusal(chat({{"messages", {{{"role", "user"}, {"content", 5}}}}})) ==
        "invalid_payload input.messages[0].content: neither a string nor a list");

  CHECK(chat({{"messages", std::vector<dom>(256, hello)}})->messages.size() == 256);
  CHECK(refusal(chat({{"messages", std::vector<dom>(257, hello)}})) ==
        "invalid_payload input.messages: more than 256 messages");

  auto out = chat(
      {{"messages", {{{"role", "system"}, {"content", "s"}}, hello, {{"role", "assistant"}, {"content", ""}}, hello}}});
  REQUIRE(out);
  CHECK(out->messages[0].from == role::system);
  CHECK(out->messages[2].from == role::assistant);
  CHECK(out->messages[3].from == role::user);
}

TEST_CASE("chat: input has the same aliases as everywhere") {
  for (std::string name : {"payload", "data"}) {
    auto text = dom{{"type", "input.append"}, {name, {{"messages", {hello}}}}}.dump();
    CHECK(decode_chat_append(*peek(text)));
  }
  CHECK(refusal(decode_chat_append(*peek(R"({"type":"input.append"})"))) == "missing_field input: required");
  CHECK(refusal(decode_chat_append(*peek(R"({"type":"input.append","input":[]})"))) ==
        "invalid_payload input: not an object");
}

TEST_CASE("chat: content items") {
  auto out = content({{{"type", "text"}, {"text", "a\nb"}},
                      {{"type", "image"}, {"data", "data:image/jpeg;base64," + test::jpeg()}},
                      {{"type", "audio"}, {"data", test::sound(1)}},
                      {{"type", "audio"}, {"data", test::wav_voice()}},
                      {{"type", "video"},
                       {"data", {test::jpeg(), test::jpeg(9, 9)}},
                       {"stack_frames", 3},
                       {"audio", test::sound(16'000)}},
                      {{"type", "video"}, {"data", test::jpeg()}, {"name", "a.mp4"}, {"duration", 3}}});
  REQUIRE(out);
  auto& items = out->messages[0].content;
  REQUIRE(items.size() == 6);
  CHECK(std::get<text_item>(items[0]).text == "a\nb");
  CHECK(*std::get<image_item>(items[1]).file == test::jpeg_file(640, 480));
  CHECK(std::get<audio_item>(items[2]).samples->size() == 1);
  CHECK(std::get<audio_item>(items[3]).samples->size() == 8000);
  auto& film = std::get<video_item>(items[4]);
  CHECK(film.frames.size() == 2);
  CHECK(film.stack_frames == 3);
  CHECK(film.samples->size() == 16'000);
  auto& still = std::get<video_item>(items[5]);
  CHECK(still.frames.size() == 1);
  CHECK(still.stack_frames == 1);
  CHECK_FALSE(still.samples);
}

TEST_CASE("chat: content items that are none") {
  const std::string at = "input.messages[0].content";
  auto item = [](dom one) { return refusal(content(dom::array({one}))); };
  CHECK(refusal(content(dom::array())) == "invalid_payload " + at + ": empty");
  CHECK(item("x") == "invalid_payload " + at + "[0]: not an object");
  CHECK(item({{"text", "x"}}) == "missing_field " + at + "[0].type: required");
  CHECK(item({{"type", "input_text"}, {"text", "x"}}) ==
        "invalid_payload " + at + "[0].type: none of text, audio, image, video");
  CHECK(item({{"type", 1}}) == "invalid_payload " + at + "[0].type: not a string");
  CHECK(item({{"type", "text"}}) == "missing_field " + at + "[0].text: required");
  CHECK(item({{"type", "text"}, {"text", 1}}) == "invalid_payload " + at + "[0].text: not a string");
  for (std::string kind : {"image", "audio", "video"}) {
    CAPTURE(kind);
    CHECK(item({{"type", kind}}) == "missing_field " + at + "[0].data: required");
    CHECK(item({{"type", kind}, {"data", 1}}) == "invalid_payload " + at + "[0].data: not a string");
    CHECK(item({{"type", kind}, {"data", "A"}}) ==
          "invalid_payload " + at + "[0].data: not base64: 1 characters are no multiple of 4");
  }
  CHECK(item({{"type", "audio"}, {"data", ""}}) ==
        "invalid_payload " + at + "[0].data: 0 samples, outside 1..13120000");
  CHECK(item({{"type", "image"}, {"data", test::to_base64("GIF89a")}}) ==
        "invalid_payload " + at + "[0].data: a GIF picture; JPEG, PNG and WebP are read");
  CHECK(item({{"type", "video"}, {"data", dom::array()}}) == "invalid_payload " + at + "[0].data: empty");
  CHECK(item({{"type", "video"}, {"data", {test::jpeg(), 1}}}) ==
        "invalid_payload " + at + "[0].data[1]: not a string");
  CHECK(item({{"type", "video"}, {"data", test::jpeg()}, {"stack_frames", 0}}) ==
        "invalid_payload " + at + "[0].stack_frames: 0 is outside 1..");
  CHECK(item({{"type", "video"}, {"data", test::jpeg()}, {"audio", "?"}}) ==
        "invalid_payload " + at + "[0].audio: not base64 at character 0");
}

// ---- limits of one append

namespace {

/// `seconds` of sound as an 8-bit file at 1 kHz: one byte per millisecond.
std::string long_wav(std::size_t seconds) {
  return test::to_base64(test::wav_file({.rate = 1'000, .bits = 8}, std::string(seconds * 1'000, '\x80')));
}

dom user(dom items) {
  return {{"role", "user"}, {"content", items}};
}

} // namespace

TEST_CASE("chat: the seconds of all items are one budget, judged before any is decoded") {
  const dom clip{{"type", "audio"}, {"data", long_wav(410)}};
  CHECK(refusal(content({clip, clip})) == "accepted");
  const auto over = content({clip, clip, clip});
  CHECK(refusal(over) == "invalid_payload input.messages[0].content[2].data: more than 820 s of sound in one append");
  const auto elsewhere = chat({{"messages", {user({clip, clip}), user({clip})}}});
  CHECK(refusal(elsewhere) ==
        "invalid_payload input.messages[1].content[0].data: more than 820 s of sound in one append");
  const dom film{{"type", "video"}, {"data", test::jpeg()}, {"audio", long_wav(500)}};
  CHECK(refusal(content({film, clip})) ==
        "invalid_payload input.messages[0].content[1].data: more than 820 s of sound in one append");
}

TEST_CASE("chat: a header behind a long chunk does not hide how long a sound is") {
  auto file = test::wav_file({.rate = 1'000, .bits = 8}, std::string(500'000, '\x80'));
  std::string filler("LIST\0\0\1\0", 8);
  file.insert(12, filler + std::string(65'536, ' '));
  const dom clip{{"type", "audio"}, {"data", test::to_base64(file)}};
  CHECK(refusal(content({clip})) == "accepted");
  CHECK(refusal(content({clip, clip})).starts_with("invalid_payload input.messages[0].content[1].data: "));
}

TEST_CASE("chat: items, pictures and text are counted over all messages") {
  const dom word{{"type", "text"}, {"text", "a"}};
  const auto words = [&](std::size_t count) {
    dom list = dom::array();
    for (std::size_t i = 0; i < count; ++i) list.push_back(word);
    return user(list);
  };
  CHECK(refusal(chat({{"messages", {words(512), words(512)}}})) == "accepted");
  CHECK(refusal(chat({{"messages", {words(512), words(513)}}})) ==
        "invalid_payload input.messages[1].content: more than 1024 items in one append");

  dom frames = dom::array();
  for (int i = 0; i < 300; ++i) frames.push_back(test::jpeg());
  const dom film{{"type", "video"}, {"data", frames}};
  CHECK(refusal(content({film})) == "accepted");
  CHECK(refusal(content({film, film})) ==
        "invalid_payload input.messages[0].content[1].data[212]: more than 512 pictures in one append");

  const auto half = std::string(1u << 19, 'a');
  const dom long_text{{"role", "user"}, {"content", half}};
  CHECK(refusal(chat({{"messages", {long_text, long_text}}})) == "accepted");
  CHECK(refusal(chat({{"messages", {long_text, long_text, hello}}})) ==
        "invalid_payload input.messages[2].content: more than 1048576 bytes of text in one append");
  CHECK(refusal(content({{{"type", "text"}, {"text", half}}, {{"type", "text"}, {"text", half + "a"}}})) ==
        "invalid_payload input.messages[0].content[1].text: more than 1048576 bytes of text in one append");
}

TEST_CASE("chat: whoever speaks last is answered") {
  const dom system{{"role", "system"}, {"content", "Greet."}}, said{{"role", "assistant"}, {"content", "My name"}};
  for (const auto& messages : {dom{system}, dom{hello, said}, dom{hello, system}, dom{said}}) {
    const auto out = chat({{"messages", messages}});
    INFO(messages.dump());
    REQUIRE(out);
    CHECK(out->messages.size() == messages.size());
  }
}

namespace {

dom result_of(const char* id, const char* content) {
  dom out{{"role", "tool"}, {"content", content}};
  if (*id != 0) out["tool_call_id"] = id;
  return out;
}

/// Two calls, and these messages behind them.
result<chat_append_event> after_calls(std::vector<dom> more, const char* first = "call_a",
                                      const char* second = "call_b") {
  dom calls = dom::array();
  for (const auto* id : {first, second}) {
    dom call{{"function", {{"name", "get_weather"}, {"arguments", "{}"}}}};
    if (*id != 0) call["id"] = id;
    calls.push_back(call);
  }
  std::vector<dom> all{hello, {{"role", "assistant"}, {"tool_calls", calls}}};
  all.insert(all.end(), more.begin(), more.end());
  return chat({{"messages", all}});
}

/// What the results say, in their order.
std::string results_in(const result<chat_append_event>& decoded) {
  if (!decoded) return refusal(decoded);
  std::string out;
  for (const auto& each : decoded->messages)
    if (each.from == role::tool) out += std::get<text_item>(each.content.at(0)).text + " ";
  return out;
}

} // namespace

TEST_CASE("chat: a result belongs to the call with its id, wherever it stands behind the calls") {
  CHECK(results_in(after_calls({result_of("call_a", "sun"), result_of("call_b", "rain")})) == "sun rain ");
  CHECK(results_in(after_calls({result_of("call_b", "rain"), result_of("call_a", "sun")})) == "sun rain ");
  CHECK(results_in(after_calls({result_of("call_b", "rain"), result_of("call_a", "sun"), hello})) == "sun rain ");
  CHECK(results_in(after_calls({result_of("", "sun"), result_of("", "rain")})) == "sun rain "); // without ids in order
  CHECK(results_in(after_calls({result_of("", "rain"), result_of("call_a", "sun")})) == "sun rain ");
  CHECK(results_in(after_calls({result_of("x", "sun"), result_of("x", "rain")}, "x", "x")) == "sun rain ");
  const auto two_rounds = after_calls({result_of("call_b", "rain"),
                                       result_of("call_a", "sun"),
                                       {{"role", "assistant"},
                                        {"tool_calls",
                                         {{{"id", "call_a"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}},
                                          {{"id", "call_c"}, {"function", {{"name", "f"}, {"arguments", "{}"}}}}}}},
                                       result_of("call_c", "snow"),
                                       result_of("call_a", "fog")});
  CHECK(results_in(two_rounds) == "sun rain fog snow ");
}

TEST_CASE("chat: results that answer no call, or one twice, and calls without a result") {
  const std::string at = "invalid_payload input.messages[";
  CHECK(results_in(after_calls({result_of("call_a", "x"), result_of("call_c", "y")})) ==
        at + "3].tool_call_id: None of the 'tool_calls' before this result has the id 'call_c'.");
  CHECK(results_in(after_calls({result_of("call_a", "x"), result_of("call_a", "y"), result_of("call_b", "z")})) ==
        at + "3].tool_call_id: Duplicate value for 'tool_call_id' of 'call_a', in messages[2] and messages[3].");
  const std::string missing =
      "1].tool_calls: An assistant message with 'tool_calls' must be followed by tool messages "
      "responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ";
  CHECK(results_in(after_calls({result_of("call_a", "x")})) == at + missing + "call_b");
  CHECK(results_in(after_calls({result_of("call_b", "x"), hello, result_of("call_a", "y")})) ==
        at + missing + "call_a");
  CHECK(results_in(after_calls({})).empty()); // their conversation went on without them
  CHECK(results_in(after_calls({hello})).empty());
  CHECK(results_in(after_calls({result_of("", "x")}, "", "")) == at + missing + "number 2");
  CHECK(results_in(after_calls({result_of("", "x"), result_of("", "y"), result_of("", "z")})) ==
        at + "4]: there are more results than calls");
  CHECK(results_in(after_calls({result_of(std::string(257, 'x').c_str(), "x")})) ==
        at + "2].tool_call_id: not an id of 1 to 256 bytes");
}

TEST_CASE("chat: calls are text of the append, judged before they are read") {
  const dom call{{"id", "a"}, {"function", {{"name", "f"}}}}; // without its arguments
  const auto said = [&](std::size_t spaces) {
    dom calls = dom::array({call});
    calls[0]["padding"] = std::string(spaces, 'x');
    return refusal(chat({{"messages", {{{"role", "assistant"}, {"tool_calls", calls}}, hello}}}));
  };
  CHECK(said(10) == "missing_field input.messages[0].tool_calls[0].function.arguments: required");
  CHECK(said(1u << 20) ==
        "invalid_payload input.messages[0].tool_calls: more than 1048576 bytes of text in one append");
}
