#include "actors/log/log_format.hpp"
#include "actors/log/rebuild.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

// The log of a session (actors/durable): whole, the same with good checksums, or as one record without its frame.
namespace {

using namespace parley;

/// The records where their lengths say that they are, framed anew.
std::string with_good_checksums(std::string_view bytes) {
  constexpr std::size_t frame = 8;
  std::string log = actors::log_header();
  for (bytes.remove_prefix(std::min(log.size(), bytes.size())); bytes.size() > frame;) {
    std::uint32_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(frame);
    const auto record = bytes.substr(0, length);
    if (!record.empty()) actors::append_record(log, record);
    bytes.remove_prefix(record.size());
  }
  return log;
}

void take_up(std::string_view log) {
  const auto known = actors::survey(log);
  test::expect(known ? known->good_bytes <= log.size() : !known.error().empty(), "a log is used, or refused in words");
  actors::rebuild_terms terms;
  terms.resume_bytes = 1 << 20;
  terms.shown_token = "resume_x";
  terms.fresh_tokens = [] { return "resume_y"; };
  terms.now = protocol::time_point(std::chrono::hours(1000));
  if (known) terms.now_ns = known->begin.accepted_ns;
  const auto made = actors::rebuild(log, terms);
  test::expect(made ? made->machine != nullptr : !made.error().empty(), "a session is rebuilt, or refused in words");
}

} // namespace

void parley::test::fuzz(std::string_view bytes) {
  take_up(bytes);
  take_up(with_good_checksums(bytes));
  const auto record = actors::unpack_record(bytes);
  if (!record) return;
  const auto packed = actors::pack(*record);
  const auto again = actors::unpack_record(packed);
  expect(again && actors::pack(*again) == packed, "what was read can be written");
}
