#include "protocol/json/writer.hpp"

#include "base/utf8.hpp"
#include "protocol/media/pcm.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace parley::protocol::json {
namespace {

void append_escape(char c, std::string& out) {
  constexpr std::string_view digits = "0123456789abcdef";
  switch (c) {
  case '"': out += "\\\""; break;
  case '\\': out += "\\\\"; break;
  case '\n': out += "\\n"; break;
  case '\r': out += "\\r"; break;
  case '\t': out += "\\t"; break;
  case '\b': out += "\\b"; break;
  case '\f': out += "\\f"; break;
  default:
    out += "\\u00";
    out += digits[static_cast<std::size_t>(c) >> 4];
    out += digits[static_cast<std::size_t>(c) & 15];
  }
}

/// How many bytes at the front stand for themselves in a JSON string: ASCII without control characters, quotes and
/// backslashes. Eight at a time, since nearly all text and all base64 is like that.
std::size_t plain_prefix(std::string_view text) {
  constexpr std::uint64_t ones = 0x0101'0101'0101'0101, highs = 0x8080'8080'8080'8080;
  // The high bit of a byte is set if it is zero; below a found one, others may be set wrongly.
  const auto zeros = [](std::uint64_t x) { return (x - ones) & ~x; };
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    const auto control = (word - ones * 0x20) & ~word;
    if (((word | control | zeros(word ^ ones * '"') | zeros(word ^ ones * '\\')) & highs) != 0) break;
  }
  for (; at < text.size(); ++at) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c < 0x20 || c >= 0x80 || c == '"' || c == '\\') break;
  }
  return at;
}

} // namespace

void append_string(std::string_view text, std::string& out) {
  out += '"';
  while (!text.empty()) {
    const auto plain = plain_prefix(text);
    out.append(text, 0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    auto c = text.front();
    if (auto length = base::utf8::sequence_length(text); length == 0) {
      out += base::utf8::replacement;
      text.remove_prefix(1);
    } else if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\') {
      append_escape(c, out);
      text.remove_prefix(1);
    } else {
      out.append(text, 0, length);
      text.remove_prefix(length);
    }
  }
  out += '"';
}

std::size_t written_bytes(std::string_view text) {
  std::size_t bytes = text.size();
  for (const char c : text) {
    const bool short_escape = c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f';
    if (short_escape)
      bytes += 1;
    else if (static_cast<unsigned char>(c) < 0x20)
      bytes += 5;
  }
  return bytes;
}

void object_writer::begin(std::string_view key) {
  if (!first_) out_ += ',';
  first_ = false;
  out_ += '"';
  out_ += key;
  out_ += "\":";
}

void object_writer::text(std::string_view key, std::string_view value) {
  begin(key);
  append_string(value, out_);
}

void object_writer::boolean(std::string_view key, bool value) {
  begin(key);
  out_ += value ? "true" : "false";
}

void object_writer::integer(std::string_view key, std::int64_t value) {
  begin(key);
  out_ += std::to_string(value);
}

void object_writer::number(std::string_view key, double value, int decimals) {
  begin(key);
  std::array<char, 400> digits; // the longest double has 309 digits before the decimal point
  auto shown = std::isfinite(value) ? value : 0.0;
  out_.append(
      digits.data(),
      std::to_chars(digits.data(), digits.data() + digits.size(), shown, std::chars_format::fixed, decimals).ptr);
}

void object_writer::json(std::string_view key, std::string_view value) {
  begin(key);
  out_ += value;
}

void object_writer::samples(std::string_view key, std::span<const float> value) {
  begin(key);
  out_ += '"';
  append_samples(value, out_);
  out_ += '"';
}

object_writer object_writer::object(std::string_view key) {
  begin(key);
  return object_writer(out_);
}

} // namespace parley::protocol::json
