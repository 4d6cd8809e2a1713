#include "inference/text/unicode.hpp"

#include "inference/text/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <stdexcept>
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
    // The white space among the control characters.
    return (code >= 0x09 && code <= 0x0D) || code == 0x85 ? character_class::space : character_class::other;
  }
}

namespace {

/// Canonical decomposition. utf8proc's own reordering is quadratic in the marks of a run, so it is done here.
std::vector<utf8proc_int32_t> decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  utf8proc_int32_t parts[8];
  int boundary = 0;
  while (!text.empty()) {
    auto next = decode_character(text);
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

} // namespace

std::string nfc(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x80; })) return std::string(text);
  auto codes = decompose(text);
  auto length = static_cast<utf8proc_ssize_t>(codes.size());
  auto options = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);
  length = utf8proc_normalize_utf32(codes.data(), length, options);
  if (length < 0) throw std::runtime_error(utf8proc_errmsg(length));
  std::string result;
  result.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < length; ++i)
    append_utf8(result, static_cast<char32_t>(codes[static_cast<std::size_t>(i)]));
  return result;
}

} // namespace parley::inference::text
