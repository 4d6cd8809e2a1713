#include "actors/bytes/compact_pcm.hpp"

#include "base/each_cpu.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <utility>

namespace parley::actors {

namespace {

constexpr float full_scale = 32768;

PARLEY_INLINE float sample_of(std::int16_t number) {
  return static_cast<float>(number) / full_scale;
}

/// The sample next to `x`, and which of its bits differ from those of `x`. Values are not compared, because a negative zero
/// is not a 16-bit sample. There is no branch, so that a loop of this becomes vector instructions.
PARLEY_INLINE std::uint32_t convert(float x, std::int16_t& to) {
  constexpr std::int32_t magnitude = 0x7FFF'FFFF, one = 0x3F80'0000;
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto inside = static_cast<std::int32_t>(static_cast<std::int32_t>(bits & magnitude) <= one);
  const auto bounded =
      std::bit_cast<float>(bits & static_cast<std::uint32_t>(-inside)); // 0 if it is outside, or no number
  to = static_cast<std::int16_t>(static_cast<std::int32_t>(bounded * full_scale));
  return std::bit_cast<std::uint32_t>(sample_of(to)) ^ bits;
}

PARLEY_FOR_EACH_CPU bool convert_all(const float* samples, std::size_t count, std::int16_t* to) {
  constexpr std::size_t step = 16; // loops of a fixed length become vector instructions
  std::uint32_t differ = 0;
  std::size_t i = 0;
  for (; i + step <= count; i += step)
    for (std::size_t j = 0; j < step; ++j) differ |= convert(samples[i + j], to[i + j]);
  for (; i < count; ++i) differ |= convert(samples[i], to[i]);
  return differ == 0;
}

} // namespace

bool append_exact_pcm16(std::span<const float> samples, std::vector<std::int16_t>& to) {
  constexpr std::size_t step = 512; // so that a sample that is none ends it soon
  for (std::size_t i = 0; i < samples.size(); i += step) {
    const auto some = samples.subspan(i, std::min(step, samples.size() - i));
    const auto at = to.size();
    to.resize(at + some.size());
    if (!convert_all(some.data(), some.size(), to.data() + at)) return false;
  }
  return true;
}

std::optional<std::vector<std::int16_t>> exact_pcm16(std::span<const float> samples) {
  std::vector<std::int16_t> numbers;
  if (samples.empty() || !append_exact_pcm16(samples.first(1), numbers)) // most others fail here
    return samples.empty() ? std::optional(numbers) : std::nullopt;
  numbers.reserve(samples.size());
  if (!append_exact_pcm16(samples.subspan(1), numbers)) return std::nullopt;
  return numbers;
}

compact_pcm::compact_pcm(conversation::pcm samples) : kept_(samples) {
  if (!samples) return;
  if (auto numbers = exact_pcm16(*samples)) kept_ = *std::move(numbers);
}

conversation::pcm compact_pcm::samples() const {
  if (const auto* floats = std::get_if<conversation::pcm>(&kept_)) return *floats;
  const auto& numbers = std::get<std::vector<std::int16_t>>(kept_);
  auto made = std::make_shared<std::vector<float>>();
  made->reserve(numbers.size());
  for (const auto number : numbers) made->push_back(sample_of(number));
  return made;
}

std::size_t compact_pcm::bytes() const {
  if (const auto* floats = std::get_if<conversation::pcm>(&kept_))
    return *floats ? (*floats)->size() * sizeof(float) : 0;
  return std::get<std::vector<std::int16_t>>(kept_).size() * sizeof(std::int16_t);
}

void fields(byte_writer& to, compact_pcm& of) {
  const auto* numbers = of.numbers();
  const bool in_16_bits = numbers != nullptr;
  to(in_16_bits);
  if (in_16_bits) return to(*numbers);
  const auto samples = of.samples();
  to(samples);
}

void fields(byte_reader& from, compact_pcm& of) {
  bool in_16_bits = false;
  from(in_16_bits);
  if (in_16_bits) {
    std::vector<std::int16_t> numbers;
    from(numbers);
    of = compact_pcm(std::move(numbers));
  } else {
    conversation::pcm samples;
    from(samples);
    of = compact_pcm(std::move(samples));
  }
}

} // namespace parley::actors
