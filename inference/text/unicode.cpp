#include "inference/text/unicode.hpp"

#include "base/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

namespace parley::inference::text {

character_class class_of(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
  case UTF8PROC_CATEGORY_LU:
  case UTF8PROC_CATEGORY_LL:
  case UTF8PROC_CATEGORY_LT:
  case UTF8PROC_CATEGORY_LM:
  case UTF8PROC_CATEGORY_LO: return character_class::letter;
  case UTF8PROC_CATEGORY_ND:
  case UTF8PROC_CATEGORY_NL:
  case UTF8PROC_CATEGORY_NO: return character_class::number;
  case UTF8PROC_CATEGORY_ZS:
  case UTF8PROC_CATEGORY_ZL:
  case UTF8PROC_CATEGORY_ZP: return character_class::space;
  default:
    // Control characters that are white space.
    return (code >= 0x09 && code <= 0x0D) || code == 0x85 ? character_class::space : character_class::other;
  }
}

namespace {

/// Nothing is reordered or composed across these characters. They are those with a combining class (and U+11938, which
/// decomposes) that are newer than Unicode 9, because the reference uses that version's tables; and U+11A7, which
/// utf8proc 2.8 swallows as if it were a final consonant.
constexpr std::pair<char32_t, char32_t> barriers[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},     {0xC3C, 0xC3C},
    {0xD3B, 0xD3C},     {0xEBA, 0xEBA},     {0x11A7, 0x11A7},   {0x1715, 0x1715},   {0x1ABF, 0x1ACE},
    {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF},
    {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
    {0x11839, 0x1183A}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943}, {0x119E0, 0x119E0},
    {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E08F, 0x1E08F}, {0x1E130, 0x1E136},
    {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF}};

bool is_barrier(char32_t code) {
  if (code < barriers[0].first) return false;
  auto next = std::upper_bound(std::begin(barriers), std::end(barriers), code,
                               [](char32_t c, const auto& range) { return c < range.first; });
  return code <= std::prev(next)->second;
}

/// Canonical decomposition. utf8proc's own reordering is quadratic in the number of marks in a run, so it is done here.
std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  utf8proc_int32_t parts[8];
  int boundary = 0;
  while (!text.empty()) {
    auto next = base::utf8::decode(text);
    auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(next.code), parts, 8, UTF8PROC_DECOMPOSE, &boundary);
    if (n < 0 || n > 8) throw std::runtime_error("utf8proc can't decompose a character");
    codes.insert(codes.end(), parts, parts + n);
    text.remove_prefix(next.size);
  }
  auto rank = [](utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; };
  for (auto at = codes.begin(); at != codes.end();) {
    auto end = std::find_if(at, codes.end(), [&](auto code) { return rank(code) == 0; });
    std::stable_sort(at, end, [&](auto a, auto b) { return rank(a) < rank(b); });
    at = end == codes.end() ? end : end + 1;
  }
  return codes;
}

void append_nfc(std::string& out, std::string_view text) {
  auto codes = decompose(text);
  auto length = static_cast<utf8proc_ssize_t>(codes.size());
  auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  length = utf8proc_normalize_utf32(codes.data(), length, options);
  if (length < 0) throw std::runtime_error(utf8proc_errmsg(length));
  for (utf8proc_ssize_t i = 0; i < length; ++i)
    base::utf8::append(static_cast<char32_t>(codes[static_cast<std::size_t>(i)]), out);
}

} // namespace

std::string nfc(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; })) return std::string(text);
  std::string result;
  result.reserve(text.size());
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    auto next = base::utf8::decode(text.substr(at));
    if (is_barrier(next.code)) {
      append_nfc(result, text.substr(begin, at - begin));
      result += text.substr(at, next.size);
      begin = at + next.size;
    }
    at += next.size;
  }
  append_nfc(result, text.substr(begin));
  return result;
}

} // namespace parley::inference::text
