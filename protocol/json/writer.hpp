#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace parley::protocol::json {

/// Appends a JSON string, escaped, with malformed UTF-8 replaced by U+FFFD.
void append_string(std::string_view text, std::string& out);

/// How many bytes a text of valid UTF-8 takes up between the quotes of a JSON string.
std::size_t written_bytes(std::string_view text);

/// Writes one object into a string, member by member: there is no DOM, and base64 is written directly into place. Keys
/// are our own literals and need no escaping.
class object_writer {
public:
  explicit object_writer(std::string& out) : out_(out) { out_ += '{'; }

  void text(std::string_view key, std::string_view value);
  void boolean(std::string_view key, bool value);
  void integer(std::string_view key, std::int64_t value);

  /// With that many digits after the decimal point; a number that is not finite is written as 0.
  void number(std::string_view key, double value, int decimals);

  /// A value that is JSON already.
  void json(std::string_view key, std::string_view value);

  /// Samples in the wire's format (pcm.hpp).
  void samples(std::string_view key, std::span<const float> value);

  /// Begins a nested object; close it before continuing with this one.
  object_writer object(std::string_view key);

  void close() { out_ += '}'; }

private:
  void begin(std::string_view key);

  std::string& out_;
  bool first_ = true;
};

} // namespace parley::protocol::json
