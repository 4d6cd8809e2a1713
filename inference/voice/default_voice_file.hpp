#pragma once

#include <filesystem>
#include <optional>

namespace parley::inference::speech {

/// The recording in whose voice a model speaks when a session brings none: `assets/default_voice.wav`, else one of
/// those published with MiniCPM-o 4.5, `assets/HT_ref_audio.wav` or `assets/system_ref_audio.wav`. None: no voice.
std::optional<std::filesystem::path> default_voice_file(const std::filesystem::path& model);

} // namespace parley::inference::speech
