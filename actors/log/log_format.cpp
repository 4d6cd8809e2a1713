#include "actors/log/log_format.hpp"

#include "actors/log/crc32c.hpp"
#include "base/assert.hpp"

#include <bit>
#include <cstring>

namespace parley::actors {

static_assert(std::endian::native == std::endian::little);

namespace {

constexpr std::string_view magic = "PARLEYSL";
constexpr std::size_t header_bytes = log_header_bytes;
constexpr std::size_t frame_bytes = log_frame_bytes;

void append(std::string& to, std::uint32_t number) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  to.append(bytes, sizeof number);
}

std::uint32_t number_at(std::string_view bytes, std::size_t at) {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

} // namespace

std::string log_header() {
  std::string header(magic);
  append(header, log_version);
  append(header, crc32c(header));
  return header;
}

std::array<char, frame_bytes> record_frame(std::string_view record) {
  PARLEY_ASSERT(!record.empty() && record.size() <= max_record_bytes, "a record has a length that can be read back");
  std::array<char, frame_bytes> frame;
  const auto length = static_cast<std::uint32_t>(record.size());
  std::memcpy(frame.data(), &length, sizeof length);
  const auto checksum = crc32c(record, crc32c({frame.data(), sizeof length}));
  std::memcpy(frame.data() + sizeof length, &checksum, sizeof checksum);
  return frame;
}

void append_record(std::string& log, std::string_view record) {
  const auto frame = record_frame(record);
  log.append(frame.data(), frame.size()).append(record);
}

log_reader::log_reader(std::string_view bytes) : bytes_(bytes) {
  if (bytes.size() < header_bytes || !bytes.starts_with(magic)) return;
  if (number_at(bytes, header_bytes - 4) != crc32c(bytes.substr(0, header_bytes - 4))) return;
  const auto version = number_at(bytes, magic.size());
  header_ = version >= oldest_log_version && version <= log_version ? verdict::good : verdict::other_version;
  at_ = header_bytes;
}

std::optional<std::size_t> record_length(std::string_view frame) {
  if (frame.size() < frame_bytes) return std::nullopt;
  const std::size_t length = number_at(frame, 0);
  return length == 0 || length > max_record_bytes ? std::nullopt : std::optional(length);
}

std::optional<std::string_view> log_reader::next() {
  if (header_ != verdict::good) return std::nullopt;
  const auto length = record_length(bytes_.substr(at_));
  if (!length || *length > bytes_.size() - at_ - frame_bytes) return std::nullopt;
  const auto record = bytes_.substr(at_ + frame_bytes, *length);
  if (number_at(bytes_, at_ + 4) != crc32c(record, crc32c(bytes_.substr(at_, 4)))) return std::nullopt;
  at_ += frame_bytes + *length;
  return record;
}

} // namespace parley::actors
