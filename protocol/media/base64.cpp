#include "protocol/media/base64.hpp"

#include "protocol/media/base64_wide.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

namespace parley::protocol::base64 {
namespace {

static_assert(std::endian::native == std::endian::little, "the tables below are laid out for little-endian stores");

constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint32_t wrong = 0x8000'0000;

using column = std::array<std::uint32_t, 256>;

/// What a character in column 0 to 3 of a group contributes to the group's three bytes, low byte first; `wrong` for
/// characters outside the alphabet.
constexpr std::array<column, 4> make_decode_tables() {
  std::array<column, 4> out{};
  for (auto& one : out) one.fill(wrong);
  for (std::uint32_t value = 0; value < alphabet.size(); ++value) {
    auto c = static_cast<unsigned char>(alphabet[value]);
    out[0][c] = value << 2;
    out[1][c] = (value >> 4) | ((value & 0x0F) << 12);
    out[2][c] = ((value >> 2) << 8) | ((value & 0x03) << 22);
    out[3][c] = value << 16;
  }
  return out;
}

/// The two characters for twelve bits, the first in the low byte.
constexpr std::array<std::uint16_t, 4096> make_encode_table() {
  std::array<std::uint16_t, 4096> out{};
  for (std::uint32_t bits = 0; bits < out.size(); ++bits)
    out[bits] = static_cast<std::uint16_t>(static_cast<unsigned char>(alphabet[bits >> 6]) |
                                           (static_cast<unsigned char>(alphabet[bits & 63]) << 8));
  return out;
}

constexpr auto decode_tables = make_decode_tables();
constexpr auto encode_table = make_encode_table();

std::uint32_t group_bits(const char* group) {
  auto c = reinterpret_cast<const unsigned char*>(group);
  return decode_tables[0][c[0]] | decode_tables[1][c[1]] | decode_tables[2][c[2]] | decode_tables[3][c[3]];
}

std::size_t padding(std::string_view text) {
  if (text.ends_with("==")) return 2;
  return text.ends_with('=') ? 1 : 0;
}

std::uint64_t big_endian_at(const std::byte* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return __builtin_bswap64(word);
}

} // namespace

std::optional<std::string> joined(std::string_view text) {
  const auto is_white = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  // The loop inside has a fixed length so that the compiler vectorises it. No character of base64 is that small.
  constexpr std::size_t step = 64;
  std::size_t at = 0;
  for (; at + step <= text.size(); at += step) {
    unsigned char least = 255;
    for (std::size_t i = 0; i < step; ++i) least = std::min(least, static_cast<unsigned char>(text[at + i]));
    if (least <= ' ') break;
  }
  if (std::none_of(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_white)) return std::nullopt;
  std::string out(text);
  out.erase(std::remove_if(out.begin() + static_cast<std::ptrdiff_t>(at), out.end(), is_white), out.end());
  return out;
}

std::optional<std::size_t> decoded_size(std::string_view text) {
  if (text.size() % 4 != 0) return {};
  return text.size() / 4 * 3 - padding(text);
}

bool decode_groups(std::string_view text, std::byte* out) {
  std::uint32_t seen = 0;
  const auto done = wide::decode_groups(text, out);
  auto at = text.data() + done * 4;
  auto end = text.data() + text.size();
  out += done * 3;
  // Two groups per step: six bytes are written with one eight-byte store, so the last three groups are done one by one.
  for (; end - at >= 20; at += 8, out += 6) {
    auto first = group_bits(at);
    auto second = group_bits(at + 4);
    seen |= first | second;
    auto both = static_cast<std::uint64_t>(first) | (static_cast<std::uint64_t>(second) << 24);
    std::memcpy(out, &both, sizeof both);
  }
  for (; at != end; at += 4, out += 3) {
    auto bits = group_bits(at);
    seen |= bits;
    std::memcpy(out, &bits, 3);
  }
  return (seen & wrong) == 0;
}

bool decode_to(std::string_view text, std::byte* out) {
  auto pad = padding(text);
  if (text.size() % 4 != 0) return false;
  if (pad == 0) return decode_groups(text, out);
  auto whole = text.size() - 4;
  std::array<char, 4> last{};
  std::copy_n(text.data() + whole, 4, last.begin());
  std::fill(last.end() - static_cast<std::ptrdiff_t>(pad), last.end(), 'A');
  auto bits = group_bits(last.data());
  if (!decode_groups(text.substr(0, whole), out) || (bits & wrong) != 0) return false;
  std::memcpy(out + whole / 4 * 3, &bits, 3 - pad);
  return true;
}

std::optional<std::string> decode(std::string_view text) {
  auto bytes = decoded_size(text);
  if (!bytes) return {};
  std::string out(*bytes, '\0');
  if (!decode_to(text, reinterpret_cast<std::byte*>(out.data()))) return {};
  return out;
}

std::string fault(std::string_view text) {
  auto body = text.substr(0, text.size() - padding(text));
  auto position = body.find_first_not_of(alphabet);
  if (position != std::string_view::npos) return "not base64 at character " + std::to_string(position);
  if (text.size() % 4 != 0) return "not base64: " + std::to_string(text.size()) + " characters are no multiple of 4";
  return {};
}

void append(std::span<const std::byte> bytes, std::string& out) {
  std::array<char, 4096> block;
  auto at = bytes.data();
  auto left = bytes.size();
  // Whole blocks are encoded on the stack first, so that each byte is written to the string only once. Six bytes per
  // step, read with an eight-byte load.
  while (left > 0) {
    const auto done = wide::encode_groups({at, left}, block);
    at += done * 3;
    left -= done * 3;
    auto to = block.data() + done * 4;
    auto room = block.data() + block.size();
    for (; left >= 8 && to != room; at += 6, left -= 6, to += 8) {
      auto bits = big_endian_at(at);
      std::array<std::uint16_t, 4> four{encode_table[bits >> 52], encode_table[(bits >> 40) & 0xFFF],
                                        encode_table[(bits >> 28) & 0xFFF], encode_table[(bits >> 16) & 0xFFF]};
      std::memcpy(to, four.data(), sizeof four);
    }
    for (; left > 0 && left < 8 && to != room; to += 4) {
      auto taken = std::min<std::size_t>(left, 3);
      std::array<std::uint32_t, 3> three{};
      for (std::size_t i = 0; i < taken; ++i) three[i] = std::to_integer<std::uint32_t>(at[i]);
      auto bits = (three[0] << 16) | (three[1] << 8) | three[2];
      std::memcpy(to, &encode_table[bits >> 12], 2);
      std::memcpy(to + 2, &encode_table[bits & 0xFFF], 2);
      std::fill(to + 1 + taken, to + 4, '=');
      at += taken;
      left -= taken;
    }
    out.append(block.data(), to);
  }
}

} // namespace parley::protocol::base64
