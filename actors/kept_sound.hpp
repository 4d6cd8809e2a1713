#pragma once

#include "actors/byte_archive.hpp"
#include "inference/unit.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace parley::actors {

/// Samples (16 kHz) that are kept for later, bit by bit as they came: in half the memory when they were 16-bit samples
/// once, which most clients' are; otherwise the floats themselves, shared.
class kept_sound {
public:
  kept_sound() = default;
  explicit kept_sound(inference::pcm samples);
  explicit kept_sound(std::vector<std::int16_t> numbers) : kept_(std::move(numbers)) {}

  inference::pcm samples() const;

  /// The 16-bit samples; null when there are none.
  const std::vector<std::int16_t>* numbers() const { return std::get_if<std::vector<std::int16_t>>(&kept_); }

  /// Of memory.
  std::size_t bytes() const;

private:
  std::variant<inference::pcm, std::vector<std::int16_t>> kept_;
};

/// As bytes, in the form in which it is kept.
void fields(byte_writer& to, kept_sound& of);
void fields(byte_reader& from, kept_sound& of);

/// The 16-bit samples that, divided by 32768, are exactly these; none if there are no such.
std::optional<std::vector<std::int16_t>> exact_pcm16(std::span<const float> samples);

} // namespace parley::actors
