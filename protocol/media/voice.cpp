#include "protocol/media/voice.hpp"

#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/sound_file.hpp"
#include "protocol/media/wav.hpp"

#include <cmath>

namespace parley::protocol {
namespace {

constexpr double raw_rate = 16'000;

/// Enough to tell the kind of a file.
constexpr std::size_t mark_characters = 4096;

/// How a WAV file begins in base64: "RIFF" and the first bits of its size.
constexpr std::string_view riff_base64 = "UklGR";

/// More base64 than the chunks before a WAV file's data ever need.
constexpr std::size_t head_characters = 64u << 10;

base::file_kind kind_of(std::string_view base64_text) {
  const auto head = base64::decode(base64_text.substr(0, mark_characters));
  return head ? base::kind_of(*head) : base::file_kind::unknown;
}

/// Of a WAV file, by its header; nothing if that is not whole.
std::optional<double> seconds_of_wav(std::string_view base64_text) {
  const auto bytes = base64::decoded_size(base64_text);
  const auto head = bytes ? base64::decode(base64_text.substr(0, head_characters)) : std::nullopt;
  return head ? wav_seconds(*head, *bytes) : std::nullopt;
}

} // namespace

std::string_view without_data_url(std::string_view text) {
  constexpr std::string_view mark = ";base64,";
  if (!text.starts_with("data:")) return text;
  // A media type and its parameters are short; what follows is sound, which need not be searched.
  auto found = text.substr(0, 256).find(mark);
  return found == std::string_view::npos ? text : text.substr(found + mark.size());
}

bool may_hold_wav(std::string_view frame) {
  return frame.find(riff_base64) != frame.npos || frame.find("\\u00") != frame.npos;
}

std::optional<double> seconds_of_sound(std::string_view base64_text) {
  if (const auto lines = base64::joined(base64_text)) return seconds_of_sound(*lines);
  const auto text = without_data_url(base64_text);
  const auto bytes = base64::decoded_size(text);
  if (!bytes) return std::nullopt;
  const auto kind = kind_of(text);
  if (kind == base::file_kind::wav) return seconds_of_wav(text);
  if (kind != base::file_kind::unknown) return std::nullopt;
  const std::size_t samples = *bytes / sizeof(float);
  return static_cast<double>(samples) / raw_rate;
}

sample_range samples_in(seconds_range allowed) {
  return {std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(allowed.least * raw_rate))),
          static_cast<std::size_t>(allowed.most * raw_rate)};
}

result<pcm> decode_sound(std::string_view base64_text, seconds_range allowed, std::string_view field) {
  if (const auto lines = base64::joined(base64_text)) return decode_sound(*lines, allowed, field);
  const auto text = without_data_url(base64_text);
  const auto kind = kind_of(text);
  if (kind == base::file_kind::unknown) return decode_samples(text, samples_in(allowed), field);
  const wav_options wanted{static_cast<std::uint32_t>(raw_rate), allowed.least, allowed.most};
  if (kind == base::file_kind::wav)
    if (const auto seconds = seconds_of_wav(text)) // judged before all of it is decoded
      if (auto why = judge_seconds(*seconds, wanted)) return invalid(field, *why);
  const auto bytes = base64::decode(text);
  if (!bytes) return invalid(field, base64::fault(text));
  auto samples = read_sound(*bytes, wanted);
  if (!samples) return invalid(field, samples.error());
  return std::make_shared<const std::vector<float>>(std::move(*samples));
}

} // namespace parley::protocol
