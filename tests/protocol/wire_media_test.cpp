#include "protocol/codec/wire_media.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace parley::protocol;

namespace {

struct kept {
  std::string frame;
  std::vector<std::pair<media_kind, std::string>> media;
};

kept separate(const std::string& frame) {
  kept out;
  auto line = separate_media(frame, [&](media_kind kind, std::string_view content) {
    out.media.emplace_back(kind, content);
    return "#" + std::to_string(out.media.size());
  });
  REQUIRE(line);
  out.frame = std::move(*line);
  return out;
}

using media = std::vector<std::pair<media_kind, std::string>>;

} // namespace

TEST_CASE("sound and frames leave an append, by all their names") {
  const auto current = separate(R"({"type":"input.append","input":{"audio":"AAAA","video_frames":["/9j/","/9k/"],)"
                                R"("force_listen":true}})");
  CHECK(current.frame == R"({"type":"input.append","input":{"audio":#1,"video_frames":[#2,#3],"force_listen":true}})");
  CHECK(current.media ==
        media{{media_kind::sound, "AAAA"}, {media_kind::picture, "/9j/"}, {media_kind::picture, "/9k/"}});
  CHECK(separate(R"({"audio_base64":"A","frame_base64_list":["B"]})").media ==
        media{{media_kind::sound, "A"}, {media_kind::picture, "B"}});
  CHECK(separate(R"({"data":{"audio":{"data":"A"}}})").media == media{{media_kind::sound, "A"}});
}

TEST_CASE("what a chat message brings leaves it, its words stay") {
  const auto chat = separate(R"({"messages":[{"role":"user","content":[{"type":"text","text":"hi"},)"
                             R"({"type":"image","data":"P"},{"data":"S","type":"audio"},)"
                             R"({"type":"video","data":["F","G"],"audio":"T"}]}],"tts":{"ref_audio_data":"V"}})");
  CHECK(chat.frame == R"({"messages":[{"role":"user","content":[{"type":"text","text":"hi"},)"
                      R"({"type":"image","data":#1},{"data":#2,"type":"audio"},)"
                      R"({"type":"video","data":[#3,#4],"audio":#5}]}],"tts":{"ref_audio_data":#6}})");
  CHECK(chat.media == media{{media_kind::picture, "P"},
                            {media_kind::sound, "S"},
                            {media_kind::picture, "F"},
                            {media_kind::picture, "G"},
                            {media_kind::sound, "T"},
                            {media_kind::voice, "V"}});
}

TEST_CASE("secrets and texts without end are not kept") {
  CHECK(separate(R"({"payload":{"api_key":"k","authorization":"Bearer k"}})").media ==
        media{{media_kind::secret, "k"}, {media_kind::secret, "Bearer k"}});
  const std::string longest(longest_text_kept, 'x');
  CHECK(separate(R"({"text":")" + longest + R"("})").media.empty());
  CHECK(separate(R"({"text":"x)" + longest + R"("})").media == media{{media_kind::text, "x" + longest}});
}

TEST_CASE("one line comes out, and what escapes mean") {
  CHECK(separate("{\n \"text\":\r\n\"a\\nb\"}\n").frame == R"({  "text":  "a\nb"} )");
  CHECK(separate(R"({"audio":"A\/A="})").media == media{{media_kind::sound, "A/A="}});
}

TEST_CASE("what is no JSON is nothing") {
  const std::string frame = GENERATE("", "{", "hello", R"({"audio":"AAAA)");
  CHECK_FALSE(separate_media(frame, [](media_kind, std::string_view) { return std::string(); }));
}
