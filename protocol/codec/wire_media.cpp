#include "protocol/codec/wire_media.hpp"

#include "protocol/json/document.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace parley::protocol {
namespace {

using json::document;
using json::node;

// Every name that docs/protocol.md gives to sound or pictures, aliases included.
constexpr std::array<std::string_view, 3> sound_names{"audio", "audio_base64", "audio_data"};
constexpr std::array<std::string_view, 5> voice_names{"ref_audio", "ref_audio_base64", "tts_ref_audio",
                                                      "tts_ref_audio_base64", "ref_audio_data"};
constexpr std::array<std::string_view, 3> frame_names{"video_frames", "frame_base64_list", "frames"};
constexpr std::array<std::string_view, 2> data_names{"data", "base64"};
constexpr std::array<std::string_view, 6> secret_names{"api_key",      "apikey",        "authorization",
                                                       "access_token", "client_secret", "password"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class separator {
public:
  separator(const document& from, const media_keeper& keep) : from_(from), keep_(keep) {}

  std::string run() {
    out_.reserve(1024);
    visit(0, {}, media_kind::text);
    copy_to(from_.text.size());
    return std::move(out_);
  }

private:
  /// `name` is the name of the member, or of the array that contains the value; `data` is what a member called data
  /// contains.
  void visit(std::uint32_t index, std::string_view name, media_kind data) {
    const node& at = from_.nodes[index];
    if (at.type == json::kind::string) return text(at, name, data);
    if (at.type == json::kind::array) {
      for (auto next = index + 1; next < at.next; next = from_.nodes[next].next) visit(next, name, data);
    } else if (at.type == json::kind::object) {
      const auto inner = data_of(index, name);
      for (auto key = index + 1; key < at.next; key = from_.nodes[key + 1].next)
        visit(key + 1, json::value(from_, key).raw(), inner);
    }
  }

  media_kind data_of(std::uint32_t object, std::string_view name) const {
    if (is_one_of(sound_names, name)) return media_kind::sound;
    const auto type = json::member(json::value(from_, object), "type");
    if (!type.is(json::kind::string)) return media_kind::text;
    if (type.raw() == "audio") return media_kind::sound;
    return type.raw() == "image" || type.raw() == "video" ? media_kind::picture : media_kind::text;
  }

  static media_kind kind_of(std::string_view name, media_kind data) {
    if (is_one_of(sound_names, name)) return media_kind::sound;
    if (is_one_of(voice_names, name)) return media_kind::voice;
    if (is_one_of(frame_names, name)) return media_kind::picture;
    if (is_one_of(data_names, name)) return data;
    return is_one_of(secret_names, name) ? media_kind::secret : media_kind::text;
  }

  void text(const node& at, std::string_view name, media_kind data) {
    const auto kind = kind_of(name, data);
    if (kind == media_kind::text && at.end - at.begin <= longest_text_kept) return;
    copy_to(at.begin - 1);
    const auto raw = from_.text.substr(at.begin, at.end - at.begin);
    out_ += at.escaped ? keep_(kind, json::unescape(value_of(at))) : keep_(kind, raw);
    copied_ = at.end + 1;
  }

  json::value value_of(const node& at) const { return {from_, static_cast<std::uint32_t>(&at - from_.nodes.data())}; }

  /// In a valid JSON text, line breaks occur only between values.
  void copy_to(std::size_t end) {
    const auto from = out_.size();
    out_ += from_.text.substr(copied_, end - copied_);
    std::replace_if(
        out_.begin() + static_cast<std::ptrdiff_t>(from), out_.end(), [](char c) { return c == '\n' || c == '\r'; },
        ' ');
    copied_ = end;
  }

  const document& from_;
  const media_keeper& keep_;
  std::size_t copied_ = 0;
  std::string out_;
};

} // namespace

std::optional<std::string> separate_media(std::string_view frame, const media_keeper& keep) {
  const auto whole = json::scan(frame);
  if (whole.outcome != json::verdict::good) return std::nullopt;
  return separator(whole, keep).run();
}

} // namespace parley::protocol
