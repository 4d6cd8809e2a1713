#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The frame of a session's log: a header, then records, each with its length and checksum. What follows a torn or
// damaged record is not read. Numbers are little-endian. Pure.
//
//   "PARLEYSL" | version u32 | CRC-32C of these 12 bytes u32
//   length u32 | CRC-32C of the length and the bytes u32 | the bytes     (as often as necessary)
namespace parley::actors {

/// Must change with the contents of any record, and whenever the session machine would answer old records differently.
inline constexpr std::uint32_t log_version = 5;

/// Logs of this version and later ones are read, and go on as they began.
inline constexpr std::uint32_t oldest_log_version = 4;

/// The longest record. Longer ones are not written, and are damage when read.
inline constexpr std::size_t max_record_bytes = std::size_t{256} << 20;

/// What a log begins with.
std::string log_header();

/// What comes before a record of 1 to max_record_bytes bytes.
std::array<char, 8> record_frame(std::string_view record);

/// Adds one record of 1 to max_record_bytes bytes.
void append_record(std::string& log, std::string_view record);

/// The length of the record whose frame begins these bytes, at least `log_frame_bytes`; nothing if it cannot be one.
std::optional<std::size_t> record_length(std::string_view frame);

inline constexpr std::size_t log_header_bytes = 16;
inline constexpr std::size_t log_frame_bytes = 8; ///< before each record

/// Reads a log from its beginning. The bytes must outlive it.
class log_reader {
public:
  enum class verdict : std::uint8_t { good, not_a_log, other_version };

  explicit log_reader(std::string_view bytes);

  verdict header() const { return header_; }

  /// The next record; nothing at the end, or where the rest is torn or damaged.
  std::optional<std::string_view> next();

  /// How many bytes the header and the records so far take.
  std::size_t good_bytes() const { return at_; }

private:
  std::string_view bytes_;
  verdict header_ = verdict::not_a_log;
  std::size_t at_ = 0;
};

} // namespace parley::actors
