#pragma once

#include <filesystem>
#include <optional>

namespace parley::inference::speech {

/// The recording in whose voice a model speaks if a session brings none: `assets/default_voice.wav`, or else one of
/// those published with MiniCPM-o 4.5, `assets/HT_ref_audio.wav` or `assets/system_ref_audio.wav`. None = the model has
/// no default voice.
std::optional<std::filesystem::path> default_voice_file(const std::filesystem::path& model);

} // namespace parley::inference::speech
