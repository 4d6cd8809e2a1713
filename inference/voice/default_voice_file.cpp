#include "inference/voice/default_voice_file.hpp"

namespace parley::inference::speech {

std::optional<std::filesystem::path> default_voice_file(const std::filesystem::path& model) {
  for (const auto* name : {"default_voice.wav", "HT_ref_audio.wav", "system_ref_audio.wav"})
    if (auto file = model / "assets" / name; exists(symlink_status(file))) return file;
  return std::nullopt;
}

} // namespace parley::inference::speech
