#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace parley::protocol::json {

/// Appends a JSON string: escaped, malformed UTF-8 replaced by U+FFFD.
void append_string(std::string_view text, std::string& out);

/// Writes one object into a string by hand, member after member: no DOM, and base64 goes straight to its place.
/// Keys are literals of ours and need no escaping.
class object_writer {
public:
  explicit object_writer(std::string& out) : out_(out) { out_ += '{'; }

  void text(std::string_view key, std::string_view value);
  void boolean(std::string_view key, bool value);
  void integer(std::string_view key, std::int64_t value);

  /// With so many digits behind the point; a number that is not finite is written as 0.
  void number(std::string_view key, double value, int decimals);

  /// Samples as the wire wants them (pcm.hpp).
  void samples(std::string_view key, std::span<const float> value);

  /// A nested object; close it before this one goes on.
  object_writer object(std::string_view key);

  void close() { out_ += '}'; }

private:
  void begin(std::string_view key);

  std::string& out_;
  bool first_ = true;
};

} // namespace parley::protocol::json
