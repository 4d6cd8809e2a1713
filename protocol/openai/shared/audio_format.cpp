#include "protocol/openai/shared/audio_format.hpp"

#include "protocol/json/writer.hpp"

#include <array>
#include <utility>

namespace parley::protocol::openai {
namespace {

using speech::sound_coding;

constexpr std::array<std::pair<std::string_view, sound_coding>, 3> names{{
    {"audio/pcm", sound_coding::pcm16},
    {"audio/pcmu", sound_coding::mu_law},
    {"audio/pcma", sound_coding::a_law},
}};
constexpr int law_rate = 8'000; ///< Hz

} // namespace

std::optional<speech::sound_format> audio_format_of(std::string_view name, std::optional<std::int64_t> rate) {
  for (const auto& [known, coding] : names) {
    if (known != name) continue;
    const bool pcm = coding == sound_coding::pcm16;
    const int usual = pcm ? speech::model_output_rate : law_rate;
    if (rate && *rate != usual && !(pcm && *rate == speech::model_input_rate)) return std::nullopt;
    return speech::sound_format{coding, rate ? static_cast<int>(*rate) : usual};
  }
  return std::nullopt;
}

std::string encode_format(const speech::sound_format& format) {
  std::string out;
  json::object_writer write(out);
  write.text("type", names[static_cast<std::size_t>(format.coding)].first);
  if (format.coding == sound_coding::pcm16) write.integer("rate", format.rate);
  write.close();
  return out;
}

} // namespace parley::protocol::openai
