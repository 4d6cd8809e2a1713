#pragma once

#include "protocol/speech/sound.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol::openai {

/// The format of that name (`audio/pcm`, `audio/pcmu`, `audio/pcma`) and rate (absent = the usual one), as in
/// `audio.input.format`; nothing if it is none of ours.
std::optional<speech::sound_format> audio_format_of(std::string_view name, std::optional<std::int64_t> rate);

/// The JSON object that names the format.
std::string encode_format(const speech::sound_format& format);

} // namespace parley::protocol::openai
