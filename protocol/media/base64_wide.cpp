#include "protocol/media/base64_wide.hpp"

#if defined(__x86_64__)

#include <immintrin.h>

// After W. Muła and D. Lemire, "Faster Base64 Encoding and Decoding Using AVX2 Instructions" (arXiv:1704.00605).
#define PARLEY_AVX2 __attribute__((target("avx2")))

namespace parley::protocol::base64::wide {
namespace {

using bytes32 = __m256i;

constexpr std::size_t step_groups = 8;
constexpr std::size_t step_characters = step_groups * 4;
constexpr std::size_t step_bytes = step_groups * 3;

bool able() {
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  return has_avx2;
}

/// A table of sixteen entries for `_mm256_shuffle_epi8`.
PARLEY_AVX2 inline bytes32 table(__m128i sixteen) {
  return _mm256_broadcastsi128_si256(sixteen);
}

/// The six-bit values of the characters; false if any is outside the alphabet.
PARLEY_AVX2 inline bool six_bits_of(bytes32 text, bytes32& six) {
  // Indexed by the high half of a character: which low halves are invalid, and what to add. One bit per kind.
  const auto wrong_beside = table(_mm_setr_epi8(0x10, 0x10, 0x01, 0x02, 0x04, 0x08, 0x04, 0x08, //
                                                0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10, 0x10));
  const auto kind = table(_mm_setr_epi8(0x15, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, 0x11, //
                                        0x11, 0x11, 0x13, 0x1A, 0x1B, 0x1B, 0x1B, 0x1A));
  const auto shift = table(_mm_setr_epi8(0, 16, 19, 4, -65, -65, -71, -71, 0, 0, 0, 0, 0, 0, 0, 0));
  const auto low_bits = _mm256_set1_epi8(0x0F);
  const auto high = _mm256_and_si256(_mm256_srli_epi32(text, 4), low_bits);
  const auto low = _mm256_and_si256(text, low_bits);
  if (!_mm256_testz_si256(_mm256_shuffle_epi8(wrong_beside, high), _mm256_shuffle_epi8(kind, low))) return false;
  // '/' shares its high half with '+' and uses the entry one below.
  const auto slash = _mm256_cmpeq_epi8(text, _mm256_set1_epi8('/'));
  six = _mm256_add_epi8(text, _mm256_shuffle_epi8(shift, _mm256_add_epi8(high, slash)));
  return true;
}

/// 32 six-bit values as 24 bytes; the other eight are zero.
PARLEY_AVX2 inline bytes32 packed(bytes32 six) {
  const auto twelve = _mm256_maddubs_epi16(six, _mm256_set1_epi32(0x0140'0140));
  const auto group = _mm256_madd_epi16(twelve, _mm256_set1_epi32(0x0001'1000));
  const auto gathered =
      _mm256_shuffle_epi8(group, table(_mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1)));
  return _mm256_permutevar8x32_epi32(gathered, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
}

/// The six-bit values for each character, from the first 12 bytes of either half.
PARLEY_AVX2 inline bytes32 unpacked(bytes32 twelve_each) {
  const auto group =
      _mm256_shuffle_epi8(twelve_each, table(_mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10)));
  const auto first_and_third =
      _mm256_mulhi_epu16(_mm256_and_si256(group, _mm256_set1_epi32(0x0FC0'FC00)), _mm256_set1_epi32(0x0400'0040));
  const auto second_and_fourth =
      _mm256_mullo_epi16(_mm256_and_si256(group, _mm256_set1_epi32(0x003F'03F0)), _mm256_set1_epi32(0x0100'0010));
  return _mm256_or_si256(first_and_third, second_and_fourth);
}

PARLEY_AVX2 inline bytes32 characters_of(bytes32 six) {
  // Capitals map to entry 0, small letters to 1, digits to 2 to 11, '+' to 12, '/' to 13.
  const auto shift = table(_mm_setr_epi8(65, 71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 0, 0));
  const auto beyond_capitals = _mm256_cmpgt_epi8(six, _mm256_set1_epi8(25));
  const auto place = _mm256_sub_epi8(_mm256_subs_epu8(six, _mm256_set1_epi8(51)), beyond_capitals);
  return _mm256_add_epi8(six, _mm256_shuffle_epi8(shift, place));
}

PARLEY_AVX2 std::size_t decode_avx2(std::string_view text, std::byte* out) {
  // Each step writes eight bytes too many, which the next step overwrites.
  constexpr std::size_t room = step_characters + 12;
  std::size_t groups = 0;
  for (; text.size() >= room; text.remove_prefix(step_characters), groups += step_groups) {
    bytes32 six;
    if (!six_bits_of(_mm256_loadu_si256(reinterpret_cast<const bytes32*>(text.data())), six)) break;
    _mm256_storeu_si256(reinterpret_cast<bytes32*>(out + groups * 3), packed(six));
  }
  return groups;
}

PARLEY_AVX2 std::size_t encode_avx2(std::span<const std::byte> bytes, std::span<char> out) {
  constexpr std::size_t read = 12 + 16;
  std::size_t groups = 0;
  for (; bytes.size() >= read && out.size() >= step_characters;
       bytes = bytes.subspan(step_bytes), out = out.subspan(step_characters), groups += step_groups) {
    const auto* from = reinterpret_cast<const __m128i*>(bytes.data());
    const auto* second_half = reinterpret_cast<const __m128i*>(bytes.data() + 12);
    const auto twelve_each = _mm256_set_m128i(_mm_loadu_si128(second_half), _mm_loadu_si128(from));
    _mm256_storeu_si256(reinterpret_cast<bytes32*>(out.data()), characters_of(unpacked(twelve_each)));
  }
  return groups;
}

} // namespace

std::size_t decode_groups(std::string_view text, std::byte* out) {
  return able() ? decode_avx2(text, out) : 0;
}

std::size_t encode_groups(std::span<const std::byte> bytes, std::span<char> out) {
  return able() ? encode_avx2(bytes, out) : 0;
}

} // namespace parley::protocol::base64::wide

#else

namespace parley::protocol::base64::wide {

std::size_t decode_groups(std::string_view, std::byte*) {
  return 0;
}

std::size_t encode_groups(std::span<const std::byte>, std::span<char>) {
  return 0;
}

} // namespace parley::protocol::base64::wide

#endif
