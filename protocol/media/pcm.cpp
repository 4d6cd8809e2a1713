#include "protocol/media/pcm.hpp"

#include "base/file_kind.hpp"
#include "protocol/media/base64.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace parley::protocol {
namespace {

static_assert(std::endian::native == std::endian::little, "the wire's float32 is little-endian");

constexpr std::size_t block_samples = 768; ///< 3 KiB, or 4 KiB of base64: fits into the first-level cache
constexpr std::size_t block_characters = base64::encoded_size(block_samples * sizeof(float));
static_assert(block_samples * sizeof(float) % 3 == 0, "a block ends between two base64 groups");

using block = std::array<float, block_samples>;

/// Whether all samples are within [-1, 1], as nearly always: then nothing has to be clamped. Compared as integers, the
/// magnitudes of floats are ordered, with infinities and NaN last, so one comparison finds all three problems. The
/// inner loop has a fixed length so that the compiler vectorises it.
bool within_unit(const float* samples, std::size_t count) {
  constexpr std::size_t step = 16;
  auto outside = [](float x) {
    return static_cast<std::int32_t>(static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(x) & 0x7FFF'FFFF) >
                                     0x3F80'0000);
  };
  std::int32_t found = 0;
  std::size_t i = 0;
  for (; i + step <= count; i += step)
    for (std::size_t j = 0; j < step; ++j) found |= outside(samples[i + j]);
  for (; i < count; ++i) found |= outside(samples[i]);
  return found == 0;
}

/// Clamps; false if a sample is infinite or NaN.
bool clamp_finite(float* samples, std::size_t count) {
  if (within_unit(samples, count)) return true;
  for (auto& x : std::span(samples, count)) {
    if (!std::isfinite(x)) return false;
    x = std::clamp(x, -1.0f, 1.0f);
  }
  return true;
}

/// A hint for the most common mistake, 16-bit samples sent as float32. Read as 16-bit samples, sound has neighbours
/// close to each other; the bytes of real floats do not.
std::string sixteen_bit_hint(std::string_view bytes) {
  std::int64_t jumps = 0, sizes = 0;
  std::int16_t before = 0;
  for (std::size_t at = 0; at + sizeof before <= bytes.size(); at += sizeof before) {
    std::int16_t sample;
    std::memcpy(&sample, bytes.data() + at, sizeof sample);
    jumps += std::abs(sample - before);
    sizes += std::abs(int{sample});
    before = sample;
  }
  return jumps < sizes ? "; this looks like 16-bit PCM where float32 is expected" : "";
}

tl::unexpected<error> not_finite(std::string_view field, std::size_t first, std::string_view bytes) {
  std::size_t position = 0;
  for (; position < bytes.size() / sizeof(float); ++position) {
    float sample;
    std::memcpy(&sample, bytes.data() + position * sizeof sample, sizeof sample);
    if (!std::isfinite(sample)) break;
  }
  return invalid(field, "sample " + std::to_string(first + position) + " is not finite" + sixteen_bit_hint(bytes));
}

/// Judged by the first block, which is enough for two frames of MP3.
base::file_kind kind_of(std::string_view base64_text) {
  block head;
  const auto text = base64_text.substr(0, block_characters);
  if (text.size() % 4 != 0 || !base64::decode_to(text, reinterpret_cast<std::byte*>(head.data())))
    return base::file_kind::unknown;
  return base::certain_kind_of({reinterpret_cast<const char*>(head.data()), base64::decoded_size(text).value_or(0)});
}

/// The number of samples in that many bytes, if allowed.
result<std::size_t> count_samples(std::size_t bytes, sample_range allowed, std::string_view field) {
  if (bytes % sizeof(float) != 0)
    return invalid(field, std::to_string(bytes) + " bytes are no multiple of 4, as float32 samples are");
  auto count = bytes / sizeof(float);
  if (const auto why = judge_count(count, allowed)) return invalid(field, *why);
  return count;
}

float clamped_sample(float x) {
  return std::isnan(x) ? 0.0f : std::clamp(x, -1.0f, 1.0f);
}

} // namespace

std::optional<std::string> judge_count(std::size_t samples, sample_range allowed) {
  if (samples >= allowed.least && samples <= allowed.most) return std::nullopt;
  return std::to_string(samples) + " samples, outside " + std::to_string(allowed.least) + ".." +
         std::to_string(allowed.most);
}

pcm clamped(pcm sound) {
  if (!sound || within_unit(sound->data(), sound->size())) return sound;
  return clamped(std::vector<float>(*sound));
}

pcm clamped(std::vector<float>&& samples) {
  if (!within_unit(samples.data(), samples.size()))
    std::transform(samples.begin(), samples.end(), samples.begin(), clamped_sample);
  return std::make_shared<const std::vector<float>>(std::move(samples));
}

result<pcm> decode_samples(std::string_view base64_text, sample_range allowed, std::string_view field) {
  if (const auto lines = base64::joined(base64_text)) return decode_samples(*lines, allowed, field);
  if (const auto kind = kind_of(base64_text); kind != base::file_kind::unknown)
    return invalid(field, std::string(base::name_of(kind)) + ", where raw float32 samples are expected");
  auto bytes = base64::decoded_size(base64_text);
  if (!bytes) return invalid(field, base64::fault(base64_text));
  auto count = count_samples(*bytes, allowed, field);
  if (!count) {
    // Malformed text is reported as malformed rather than by its length, if checking it is cheap.
    auto fault = base64_text.size() <= base64::encoded_size(allowed.most * sizeof(float)) ? base64::fault(base64_text)
                                                                                          : std::string();
    return fault.empty() ? tl::unexpected(std::move(count.error())) : invalid(field, fault);
  }

  auto samples = std::make_shared<std::vector<float>>();
  samples->reserve(*count);
  block work;
  auto work_bytes = reinterpret_cast<std::byte*>(work.data());
  for (auto rest = base64_text; !rest.empty();) {
    auto last = rest.size() <= block_characters;
    auto part = rest.substr(0, block_characters);
    if (!(last ? base64::decode_to(part, work_bytes) : base64::decode_groups(part, work_bytes)))
      return invalid(field, base64::fault(base64_text));
    auto part_samples = std::min(block_samples, *count - samples->size());
    if (!clamp_finite(work.data(), part_samples)) {
      base64::decode_to(part, work_bytes);
      return not_finite(field, samples->size(),
                        {reinterpret_cast<const char*>(work_bytes), part_samples * sizeof(float)});
    }
    samples->insert(samples->end(), work.begin(), work.begin() + static_cast<std::ptrdiff_t>(part_samples));
    rest.remove_prefix(part.size());
  }
  return samples;
}

void append_samples(std::span<const float> samples, std::string& out) {
  block work;
  while (!samples.empty()) {
    auto part = samples.first(std::min(block_samples, samples.size()));
    samples = samples.subspan(part.size());
    if (!within_unit(part.data(), part.size())) {
      std::transform(part.begin(), part.end(), work.begin(), clamped_sample);
      part = std::span(work).first(part.size());
    }
    base64::append(std::as_bytes(part), out);
  }
}

} // namespace parley::protocol
