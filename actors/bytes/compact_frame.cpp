#include "actors/bytes/compact_frame.hpp"

#include "actors/bytes/byte_archive.hpp"
#include "actors/bytes/compact_pcm.hpp"
#include "protocol/media/base64.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace parley::actors {

namespace {

/// Shorter strings are not worth a piece of their own.
constexpr std::size_t least_characters = 256;

enum class piece : std::uint8_t { text, bytes, numbers };

} // namespace

template<>
inline constexpr std::size_t enum_values<piece> = 3;

namespace {

std::string encoded(std::string_view bytes) {
  std::string text;
  protocol::base64::append(std::as_bytes(std::span(bytes)), text);
  return text;
}

/// Whether decoding valid base64 and encoding the bytes again gives the same text. It does unless a padded last group has
/// unused bits that are not 0.
bool is_canonical(std::string_view text) {
  constexpr std::size_t group = 4;
  if (!text.ends_with('=')) return true;
  const auto last = text.substr(text.size() - group);
  const auto bytes = protocol::base64::decode(last);
  return bytes && encoded(*bytes) == last;
}

/// What valid base64 encodes as 16-bit numbers, if it is float samples and nothing is lost.
std::optional<std::vector<std::int16_t>> as_numbers(std::string_view base64_text) {
  constexpr std::size_t most = 3072; // samples at a time, which stay in the cache
  constexpr auto characters = protocol::base64::encoded_size(most * sizeof(float));
  const auto bytes = protocol::base64::decoded_size(base64_text);
  if (!bytes || *bytes == 0 || *bytes % sizeof(float) != 0) return std::nullopt;
  std::array<float, most> samples;
  std::vector<std::int16_t> numbers;
  for (auto left = *bytes / sizeof(float); left > 0;) {
    const auto count = std::min(most, left);
    if (!protocol::base64::decode_to(base64_text.substr(0, characters),
                                     std::as_writable_bytes(std::span(samples)).data()))
      return std::nullopt;
    if (!append_exact_pcm16(std::span(samples).first(count), numbers)) return std::nullopt;
    if (numbers.size() == count) numbers.reserve(*bytes / sizeof(float));
    base64_text.remove_prefix(std::min(characters, base64_text.size()));
    left -= count;
  }
  return numbers;
}

class compactor {
public:
  std::string compact(std::string_view text) {
    std::size_t kept = 0; // everything before is in a piece
    for (auto open = text.find('"'); open != std::string_view::npos;) {
      const auto close = text.find('"', open + 1);
      if (close == std::string_view::npos) break;
      auto inside = text.substr(open + 1, close - open - 1);
      if (inside.starts_with("data:")) inside.remove_prefix(inside.substr(0, 64).find(',') + 1);
      const auto at = static_cast<std::size_t>(inside.data() - text.data());
      if (inside.size() >= least_characters && keep_decoded(text.substr(kept, at - kept), inside)) kept = close;
      open = inside.size() >= least_characters ? text.find('"', close + 1) : close;
    }
    keep(piece::text, std::string(text.substr(kept)));
    return out_.take();
  }

private:
  void keep(piece kind, std::string bytes) {
    if (!bytes.empty()) out_(kind, bytes);
  }

  /// Nothing is kept if `inside` is not the one encoding of some bytes.
  bool keep_decoded(std::string_view before, std::string_view inside) {
    if (!is_canonical(inside)) return false;
    if (auto numbers = as_numbers(inside)) {
      keep(piece::text, std::string(before));
      auto kind = piece::numbers;
      out_(kind, *numbers);
      return true;
    }
    const auto bytes = protocol::base64::decode(inside);
    if (!bytes) return false;
    keep(piece::text, std::string(before));
    keep(piece::bytes, *bytes);
    return true;
  }

  byte_writer out_;
};

} // namespace

std::string compact_frame(std::string_view text) {
  return compactor().compact(text);
}

std::optional<std::string> expand_frame(std::string_view bytes) {
  byte_reader in(bytes);
  std::string text;
  while (in.good() && !in.complete()) {
    auto kind = piece::text;
    in(kind);
    if (kind == piece::numbers) {
      std::vector<std::int16_t> numbers;
      in(numbers);
      const auto samples = compact_pcm(std::move(numbers)).samples();
      protocol::base64::append(std::as_bytes(std::span(*samples)), text);
    } else {
      std::string piece_bytes;
      in(piece_bytes);
      text += kind == piece::text ? piece_bytes : encoded(piece_bytes);
    }
  }
  if (!in.complete()) return std::nullopt;
  return text;
}

} // namespace parley::actors
