#include "app/default_voice.hpp"

#include "protocol/wav.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace parley::app {

std::shared_ptr<const std::vector<float>> load_default_voice(const config::settings& settings) {
  const bool named = !settings.voice.default_wav.empty();
  const auto path = named ? std::filesystem::path(settings.voice.default_wav)
                          : std::filesystem::path(settings.worker.model) / "assets/default_voice.wav";
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    if (named) throw std::runtime_error("voice.default: " + path.string() + " can't be read");
    return nullptr;
  }
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  auto samples = protocol::read_wav(bytes, {.min_seconds = 0.25, .max_seconds = 60});
  if (!samples) throw std::runtime_error(path.string() + ": " + samples.error());
  return std::make_shared<const std::vector<float>>(std::move(*samples));
}

} // namespace parley::app
