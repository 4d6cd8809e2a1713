#pragma once

#include "conversation/media.hpp"
#include "conversation/tools.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// The messages of a chat (docs/protocol.md 3.5).
namespace parley::conversation {

enum class role : std::uint8_t { system, user, assistant, tool };

/// Its name on the wire.
constexpr std::string_view name_of(role who) {
  constexpr std::array<std::string_view, 4> names{"system", "user", "assistant", "tool"};
  return names[static_cast<std::size_t>(who)];
}

struct text_item {
  std::string text;
};
struct audio_item {
  pcm samples; ///< 16 kHz
};
struct image_item {
  image_file file;
};
struct video_item {
  std::vector<image_file> frames;
  pcm samples;          ///< 16 kHz; may be null
  int stack_frames = 1; ///< frames that follow each second of sound
};
using content_item = std::variant<text_item, audio_item, image_item, video_item>;

struct message {
  role from = role::user;
  std::vector<content_item> content;
  std::vector<tool_call> calls = {}; ///< of the assistant
};

/// A message that joins a running duplex session (docs/protocol.md 3.9).
struct text_message {
  role from = role::user;
  std::string text;
};

/// All members, for archives (actors/bytes/byte_archive.hpp).
template<class A>
void fields(A& a, text_message& of) {
  auto& [from, text] = of;
  a(from, text);
}

} // namespace parley::conversation
