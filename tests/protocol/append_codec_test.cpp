#include "protocol/codec/client_codec.hpp"
#include "tests/protocol/wire_material.hpp"

#include <catch2/catch.hpp>

using namespace parley::protocol;
namespace test = parley::protocol::test;
using test::dom;

namespace {

constexpr std::size_t min_legacy = 4000;

result<append_event> decode(const std::string& text, mode kind) {
  auto from = peek(text);
  REQUIRE(from);
  return decode_append(*from, kind, min_legacy);
}

/// Decodes the same fields as an append of either dialect.
result<append_event> append(dialect spoken, dom fields, mode kind = mode::video) {
  if (spoken == dialect::current) return decode(dom{{"type", "input.append"}, {"input", fields}}.dump(), kind);
  fields["type"] = "input_audio_buffer.append";
  return decode(fields.dump(), kind);
}

std::string refusal(const result<append_event>& decoded) {
  if (decoded) return "accepted";
  return std::string(traits(decoded.error().code).wire) + " " + decoded.error().message;
}

const std::string second = test::sound(16'000);
const std::vector<dialect> both{dialect::current, dialect::legacy};

std::string prefix(dialect spoken) {
  return spoken == dialect::current ? "input." : "";
}

} // namespace

TEST_CASE("append: one second of sound, both dialects") {
  for (auto spoken : both) {
    auto out = append(spoken, {{"audio", second}});
    REQUIRE(out);
    CHECK(*out->samples == test::samples_of(test::from_base64(second)));
    CHECK(out->frames.empty());
    CHECK_FALSE(out->force_listen);
    CHECK_FALSE(out->max_slice_nums);
  }
}

TEST_CASE("append: all fields, both dialects") {
  for (auto spoken : both) {
    auto out = append(spoken, {{"audio", second},
                               {"video_frames", {test::jpeg(), test::jpeg(32, 32)}},
                               {"force_listen", true},
                               {"max_slice_nums", 4},
                               {"extra", {1, 2}}});
    REQUIRE(out);
    REQUIRE(out->frames.size() == 2);
    CHECK(*out->frames[0] == test::jpeg_file(640, 480));
    CHECK(*out->frames[1] == test::jpeg_file(32, 32));
    CHECK(out->force_listen);
    CHECK(out->max_slice_nums == 4);
  }
}

TEST_CASE("append: null counts as absent for optional fields") {
  for (auto spoken : both) {
    auto out = append(spoken, {{"audio", second},
                               {"video_frames", nullptr},
                               {"force_listen", nullptr},
                               {"max_slice_nums", nullptr},
                               {"hints", nullptr}});
    REQUIRE(out);
    CHECK(out->frames.empty());
    CHECK_FALSE(out->force_listen);
    CHECK_FALSE(out->max_slice_nums);
  }
}

TEST_CASE("append: audio is required and a string") {
  for (auto spoken : both) {
    auto at = prefix(spoken);
    CHECK(refusal(append(spoken, {{"force_listen", true}})) == "missing_field " + at + "audio: required");
    CHECK(refusal(append(spoken, {{"audio", nullptr}})) == "invalid_payload " + at + "audio: not a string");
    CHECK(refusal(append(spoken, {{"audio", 5}})) == "invalid_payload " + at + "audio: not a string");
    CHECK(refusal(append(spoken, {{"audio", {1, 2}}})) == "invalid_payload " + at + "audio: not a string");
    CHECK(refusal(append(spoken, {{"audio", dom::object()}})) == "missing_field " + at + "audio.data: required");
    CHECK(refusal(append(spoken, {{"audio", {{"data", 5}}}})) == "invalid_payload " + at + "audio.data: not a string");
  }
}

TEST_CASE("append: names for audio, best first") {
  auto other = test::sound(5000);
  auto size = [](const result<append_event>& out) { return out ? out->samples->size() : 0; };
  for (auto spoken : both) {
    CHECK(size(append(spoken, {{"audio_base64", other}})) == 5000);
    CHECK(size(append(spoken, {{"audio_data", other}})) == 5000);
    CHECK(size(append(spoken, {{"audio", {{"data", other}}}})) == 5000);
    CHECK(size(append(spoken, {{"audio", {{"base64", other}}}})) == 5000);
    CHECK(size(append(spoken, {{"audio_data", {{"base64", other}}}})) == 5000);
    CHECK(size(append(spoken, {{"audio", {{"data", other}, {"base64", second}}}})) == 5000);
    CHECK(size(append(spoken, {{"audio", second}, {"audio_base64", other}, {"audio_data", "?"}})) == 16'000);
    CHECK(size(append(spoken, {{"audio_data", second}, {"audio_base64", other}})) == 5000);
    CHECK(size(append(spoken, {{"audio", nullptr}, {"audio_base64", other}})) == 5000);
    CHECK(refusal(append(spoken, {{"audio_base64", "?"}})) ==
          "invalid_payload " + prefix(spoken) + "audio_base64: not base64 at character 0");
  }
}

TEST_CASE("append: names for input") {
  for (std::string name : {"input", "payload", "data"}) {
    auto out = decode(dom{{"type", "input.append"}, {name, {{"audio", second}}}}.dump(), mode::audio);
    REQUIRE(out);
    CHECK(out->samples->size() == 16'000);
  }
  auto both_given = dom{{"type", "input.append"}, {"payload", {{"audio", "?"}}}, {"input", {{"audio", second}}}};
  CHECK(decode(both_given.dump(), mode::audio));
  CHECK(refusal(decode(R"({"type":"input.append"})", mode::audio)) == "missing_field input: required");
  CHECK(refusal(decode(R"({"type":"input.append","input":null})", mode::audio)) ==
        "invalid_payload input: not an object");
  CHECK(refusal(decode(R"({"type":"input.append","input":"x"})", mode::audio)) ==
        "invalid_payload input: not an object");
  CHECK(refusal(decode(R"({"type":"input.append","payload":[1]})", mode::audio)) ==
        "invalid_payload payload: not an object");
}

TEST_CASE("append: 1 to 160 000 samples, in legacy at least 4 000") {
  for (std::size_t count : {1u, 2u, 320u, 3999u, 4000u, 4096u, 16'000u, 159'999u, 160'000u}) {
    CAPTURE(count);
    auto out = append(dialect::current, {{"audio", test::sound(count)}});
    REQUIRE(out);
    CHECK(out->samples->size() == count);
    CHECK(append(dialect::legacy, {{"audio", test::sound(count)}}).has_value() == (count >= min_legacy));
  }
  CHECK(refusal(append(dialect::current, {{"audio", ""}})) ==
        "invalid_payload input.audio: 0 samples, outside 1..160000");
  CHECK(refusal(append(dialect::current, {{"audio", test::sound(160'001)}})) ==
        "invalid_payload input.audio: 160001 samples, outside 1..160000");
  CHECK(refusal(append(dialect::legacy, {{"audio", test::sound(3999)}})) ==
        "invalid_payload audio: 3999 samples, outside 4000..160000");
  CHECK(refusal(append(dialect::legacy, {{"audio", test::sound(160'001)}})) ==
        "invalid_payload audio: 160001 samples, outside 4000..160000");
}

TEST_CASE("append: what is no base64 float32 sound") {
  for (auto spoken : both) {
    auto at = "invalid_payload " + prefix(spoken) + "audio: ";
    auto with = [&](std::size_t place, char wrong) {
      auto text = second;
      text[place] = wrong;
      return refusal(append(spoken, {{"audio", text}}));
    };
    // White space does not count, so a character is missing.
    CHECK(with(17, ' ') == at + "not base64: 85335 characters are no multiple of 4");
    CHECK(with(17, '\n') == at + "not base64: 85335 characters are no multiple of 4");
    CHECK(with(17, '\x0B') == at + "not base64 at character 17");
    CHECK(with(20'000, '-') == at + "not base64 at character 20000");
    CHECK(with(85'331, '_') == at + "not base64 at character 85331");
    CHECK(refusal(append(spoken, {{"audio", second.substr(1)}})) ==
          at + "not base64: 85335 characters are no multiple of 4");
    CHECK(refusal(append(spoken, {{"audio", "data:audio/wav;base64," + second}})) == at + "not base64 at character 4");
    CHECK(refusal(append(spoken, {{"audio", test::to_base64(std::string(64'001, '\0'))}})) ==
          at + "64001 bytes are no multiple of 4, as float32 samples are");
    std::vector<float> samples(16'000);
    samples[12'345] = std::numeric_limits<float>::quiet_NaN();
    CHECK(refusal(append(spoken, {{"audio", test::to_base64(test::bytes_of(samples))}})) ==
          at + "sample 12345 is not finite");
    samples[12'345] = 2.0f;
    auto loud = append(spoken, {{"audio", test::to_base64(test::bytes_of(samples))}});
    REQUIRE(loud);
    CHECK((*loud->samples)[12'345] == 1.0f);
  }
}

TEST_CASE("append: base64 may be escaped as JSON allows") {
  std::string escaped;
  for (char c : second) escaped += c == '/' ? "\\/" : c == '+' ? "\\u002B" : std::string(1, c);
  REQUIRE(escaped.size() > second.size());
  auto out = decode(R"({"type":"input.append","input":{"audio":")" + escaped + "\"}}", mode::audio);
  REQUIRE(out);
  CHECK(*out->samples == test::samples_of(test::from_base64(second)));
}

TEST_CASE("append: frames, by each of their names") {
  for (auto spoken : both) {
    for (std::string name : {"video_frames", "frame_base64_list", "frames"}) {
      auto out = append(spoken, {{"audio", second}, {name, {test::jpeg()}}});
      REQUIRE(out);
      CHECK(out->frames.size() == 1);
    }
    auto out = append(
        spoken, {{"audio", second}, {"frames", {"?"}}, {"frame_base64_list", {"?"}}, {"video_frames", dom::array()}});
    REQUIRE(out);
    CHECK(out->frames.empty());
    out = append(spoken, {{"audio", second}, {"video_frames", {"data:image/jpeg;base64," + test::jpeg()}}});
    REQUIRE(out);
    CHECK(*out->frames[0] == test::jpeg_file(640, 480));
  }
}

TEST_CASE("append: frames that are none, and the whole append with them") {
  for (auto spoken : both) {
    auto at = "invalid_payload " + prefix(spoken) + "video_frames";
    auto with = [&](dom frames) { return refusal(append(spoken, {{"audio", second}, {"video_frames", frames}})); };
    CHECK(with({test::jpeg(), test::jpeg(), test::jpeg(), test::jpeg()}) == "accepted");
    CHECK(with(dom(std::vector<std::string>(5, test::jpeg()))) == at + ": more than 4 frames");
    CHECK(with(test::jpeg()) == at + ": not an array");
    CHECK(with(dom::object()) == at + ": not an array");
    CHECK(with({test::jpeg(), 5}) == at + "[1]: not a string");
    CHECK(with({nullptr}) == at + "[0]: not a string");
    CHECK(with({test::jpeg(), "@"}) == at + "[1]: not base64 at character 0");
    CHECK(with({test::to_base64("hello")}) == at + "[0]: not a JPEG file");
    CHECK(with({test::jpeg(5000, 100)}) == at + "[0]: 5000x100 pixels, outside 1..4096 a side");
    CHECK(with({test::to_base64(test::jpeg_file(9, 9, (4u << 20) + 1))}) ==
          at + "[0]: 4194305 bytes, at most 4194304 are allowed");
  }
}

TEST_CASE("append: in audio, frames are left unread") {
  for (auto spoken : both)
    for (dom frames : {dom({"?"}), dom("x"), dom(std::vector<std::string>(9, "x")), dom({test::jpeg()})}) {
      auto out = append(spoken, {{"audio", second}, {"video_frames", frames}}, mode::audio);
      REQUIRE(out);
      CHECK(out->frames.empty());
    }
}

TEST_CASE("append: force_listen and max_slice_nums") {
  for (auto spoken : both) {
    auto at = "invalid_payload " + prefix(spoken);
    CHECK(refusal(append(spoken, {{"audio", second}, {"force_listen", "yes"}})) ==
          at + "force_listen: neither true nor false");
    CHECK(refusal(append(spoken, {{"audio", second}, {"force_listen", 1}})) ==
          at + "force_listen: neither true nor false");
    for (int n = 1; n <= 9; ++n) CHECK(append(spoken, {{"audio", second}, {"max_slice_nums", n}})->max_slice_nums == n);
    CHECK(refusal(append(spoken, {{"audio", second}, {"max_slice_nums", 0}})) ==
          at + "max_slice_nums: 0 is outside 1..9");
    CHECK(refusal(append(spoken, {{"audio", second}, {"max_slice_nums", 10}})) ==
          at + "max_slice_nums: 10 is outside 1..9");
    CHECK(refusal(append(spoken, {{"audio", second}, {"max_slice_nums", "1"}})) ==
          at + "max_slice_nums: not an integer");
    CHECK(refusal(append(spoken, {{"audio", second}, {"max_slice_nums", true}})) ==
          at + "max_slice_nums: not an integer");
  }
}

TEST_CASE("append: hints stand for the fields beside them") {
  auto with = [](dom fields) {
    fields["audio"] = second;
    return append(dialect::current, fields);
  };
  for (auto [direct, hinted, either] :
       {std::tuple(false, false, false), {true, false, true}, {false, true, true}, {true, true, true}})
    CHECK(with({{"force_listen", direct}, {"hints", {{"force_listen", hinted}}}})->force_listen == either);
  CHECK(with({{"hints", {{"force_listen", true}}}})->force_listen);
  CHECK(with({{"hints", {{"max_slice_nums", 3}}}})->max_slice_nums == 3);
  CHECK(with({{"max_slice_nums", 2}, {"hints", {{"max_slice_nums", 3}}}})->max_slice_nums == 2);
  CHECK(with({{"max_slice_nums", nullptr}, {"hints", {{"max_slice_nums", 3}}}})->max_slice_nums == 3);
  CHECK(refusal(with({{"hints", "x"}})) == "invalid_payload input.hints: not an object");
  CHECK(refusal(with({{"hints", {{"force_listen", "x"}}}})) ==
        "invalid_payload input.hints.force_listen: neither true nor false");
  CHECK(refusal(with({{"hints", {{"max_slice_nums", 11}}}})) ==
        "invalid_payload input.hints.max_slice_nums: 11 is outside 1..9");
}

TEST_CASE("append: the last of two equal keys counts") {
  auto out = decode(
      R"({"type":"input.append","input":{"audio":"?"},"input":{"audio":7,"force_listen":"x","force_listen":true,"audio":")" +
          second + "\"}}",
      mode::video);
  REQUIRE(out);
  CHECK(out->force_listen);
  CHECK(out->samples->size() == 16'000);
}

TEST_CASE("append: context, with or without sound") {
  const dom context{{{"role", "system"}, {"content", "Be brief."}},
                    {{"role", "user"}, {"content", "caf\u00e9 \"x\""}},
                    {{"role", "assistant"}, {"content", "a"}},
                    {{"role", "tool"}, {"content", "{}"}}};
  using parley::conversation::role;
  for (const dom& fields : {dom{{"context", context}}, dom{{"context", context}, {"audio", second}}}) {
    auto out = append(dialect::current, fields);
    REQUIRE(out);
    CHECK((out->samples != nullptr) == fields.contains("audio"));
    REQUIRE(out->context.size() == 4);
    CHECK(out->context[0].from == role::system);
    CHECK(out->context[1].from == role::user);
    CHECK(out->context[2].from == role::assistant);
    CHECK(out->context[3].from == role::tool);
    CHECK(out->context[1].text == "caf\u00e9 \"x\"");
  }
  auto none = append(dialect::current, {{"audio", second}, {"context", nullptr}});
  REQUIRE(none);
  CHECK(none->context.empty());
}

TEST_CASE("append: context is of the current dialect alone") {
  const dom context{{{"role", "user"}, {"content", "x"}}};
  CHECK(refusal(append(dialect::legacy, {{"context", context}})) == "missing_field audio: required");
  auto out = append(dialect::legacy, {{"context", context}, {"audio", second}});
  REQUIRE(out);
  CHECK(out->context.empty());
}

TEST_CASE("append: context is bounded, and only text") {
  const auto of = [](const dom& context) { return refusal(append(dialect::current, {{"context", context}})); };
  const auto said = [](const std::string& text) { return dom{{"role", "user"}, {"content", text}}; };
  const std::string bad = "invalid_payload input.context";
  CHECK(of("x") == bad + ": not an array");
  CHECK(of(dom::array()) == bad + ": empty");
  CHECK(of(std::vector<dom>(33, said("x"))) == bad + ": more than 32 messages");
  CHECK(of(std::vector<dom>(32, said("x"))) == "accepted");
  CHECK(of(dom::array({said("a"), "b"})) == bad + "[1]: not an object");
  CHECK(of(dom::array({dom{{"content", "x"}}})) == "missing_field input.context[0].role: required");
  CHECK(of(dom::array({dom{{"role", "user"}}})) == "missing_field input.context[0].content: required");
  CHECK(of(dom::array({dom{{"role", "developer"}, {"content", "x"}}})) ==
        bad + "[0].role: none of system, user, assistant, tool");
  CHECK(of(dom::array({dom{{"role", "user"}, {"content", dom::array({dom{{"type", "text"}, {"text", "x"}}})}}})) ==
        bad + "[0].content: not a string");
  CHECK(of(dom::array({said("")})) == bad + "[0].content: empty");
  CHECK(of(dom::array({said(std::string(8192, 'x'))})) == "accepted");
  CHECK(of(dom::array({said(std::string(8193, 'x'))})) == bad + "[0].content: more than 8192 bytes of text");
  CHECK(of(dom::array({said(std::string(8000, 'x')), said(std::string(193, 'x'))})) ==
        bad + "[1].content: more than 8192 bytes of text");
  CHECK(of(dom::array({said(std::string(2048, '\x01'))})) ==
        "accepted"); // counted as it is meant, not as it is escaped
  CHECK(of(dom::array({said(std::string(9000, '\x01'))})) == bad + "[0].content: more than 8192 bytes of text");
}
