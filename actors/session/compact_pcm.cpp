#include "actors/session/compact_pcm.hpp"

#include <bit>
#include <cmath>
#include <memory>
#include <utility>

namespace parley::actors {

namespace {

constexpr float full_scale = 32768;

float sample_of(std::int16_t number) {
  return static_cast<float>(number) / full_scale;
}

} // namespace

std::optional<std::vector<std::int16_t>> exact_pcm16(std::span<const float> samples) {
  std::vector<std::int16_t> numbers;
  for (const float x : samples) {
    const float scaled = x * full_scale;
    if (!(scaled >= -full_scale && scaled < full_scale)) return std::nullopt;
    const auto number = static_cast<std::int16_t>(scaled);
    // Compares bits, not values, because a negative zero is not a 16-bit sample.
    if (std::bit_cast<std::uint32_t>(sample_of(number)) != std::bit_cast<std::uint32_t>(x)) return std::nullopt;
    if (numbers.empty()) numbers.reserve(samples.size());
    numbers.push_back(number);
  }
  return numbers;
}

compact_pcm::compact_pcm(inference::pcm samples) : kept_(samples) {
  if (!samples) return;
  if (auto numbers = exact_pcm16(*samples)) kept_ = *std::move(numbers);
}

inference::pcm compact_pcm::samples() const {
  if (const auto* floats = std::get_if<inference::pcm>(&kept_)) return *floats;
  const auto& numbers = std::get<std::vector<std::int16_t>>(kept_);
  auto made = std::make_shared<std::vector<float>>();
  made->reserve(numbers.size());
  for (const auto number : numbers) made->push_back(sample_of(number));
  return made;
}

std::size_t compact_pcm::bytes() const {
  if (const auto* floats = std::get_if<inference::pcm>(&kept_)) return *floats ? (*floats)->size() * sizeof(float) : 0;
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
    inference::pcm samples;
    from(samples);
    of = compact_pcm(std::move(samples));
  }
}

} // namespace parley::actors
