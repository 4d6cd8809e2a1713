#pragma once

#include "actors/bytes/byte_archive.hpp"
#include "conversation/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace parley::actors {

/// Samples (16 kHz) stored bit for bit: in half the memory if they were 16-bit samples originally, as with most
/// clients; otherwise as the shared floats themselves.
class compact_pcm {
public:
  compact_pcm() = default;
  explicit compact_pcm(conversation::pcm samples);
  explicit compact_pcm(std::vector<std::int16_t> numbers) : kept_(std::move(numbers)) {}

  conversation::pcm samples() const;

  /// The 16-bit samples; null if it holds floats.
  const std::vector<std::int16_t>* numbers() const { return std::get_if<std::vector<std::int16_t>>(&kept_); }

  /// Size in memory.
  std::size_t bytes() const;

private:
  std::variant<conversation::pcm, std::vector<std::int16_t>> kept_;
};

/// Packs it in the form in which it is stored.
void fields(byte_writer& to, compact_pcm& of);
void fields(byte_reader& from, compact_pcm& of);

/// The 16-bit samples that, divided by 32768, are exactly these floats; none if they are not all such.
std::optional<std::vector<std::int16_t>> exact_pcm16(std::span<const float> samples);

/// The same, added to those before. If it is false, `to` has become useless.
bool append_exact_pcm16(std::span<const float> samples, std::vector<std::int16_t>& to);

} // namespace parley::actors
