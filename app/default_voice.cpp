#include "app/default_voice.hpp"

#include "base/read_file.hpp"
#include "config/load.hpp"
#include "inference/voice/default_voice_file.hpp"
#include "protocol/media/wav.hpp"

#include <string>
#include <utility>

namespace parley::app {

net::named_voice load_default_voice(const config::settings& settings, const std::filesystem::path& model) {
  const auto& chosen = settings.voice.default_wav;
  const auto own = inference::speech::default_voice_file(
      settings.worker.assets.empty() ? model : std::filesystem::path(settings.worker.assets));
  if (chosen.empty() && !own) return {};
  const auto path = chosen.empty() ? *own : std::filesystem::path(chosen);
  const auto refusal = [&](const std::string& why) {
    return config::settings_error("voice.default: " + path.string() + ": " + why);
  };
  const auto bytes = base::read_file(path);
  if (!bytes || bytes->empty()) throw refusal("cannot be read");
  auto samples = protocol::read_wav(*bytes);
  if (!samples) throw refusal(samples.error());
  return {path.filename().string(), std::make_shared<const std::vector<float>>(std::move(*samples))};
}

} // namespace parley::app
