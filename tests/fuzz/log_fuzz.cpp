#include "actors/durable/log_format.hpp"
#include "actors/durable/rebuild.hpp"
#include "tests/fuzz/fuzz.hpp"

// The log of a session (actors/durable), whole or as one record without its frame.
void parley::test::fuzz(std::string_view bytes) {
  using namespace actors;
  const auto known = survey(bytes);
  expect(known ? known->good_bytes <= bytes.size() : !known.error().empty(), "a log is used, or refused in words");
  rebuild_terms terms;
  terms.resume_bytes = 1 << 20;
  terms.shown_token = "resume_x";
  terms.fresh_tokens = [] { return "resume_y"; };
  terms.now = protocol::time_point(std::chrono::hours(1000));
  if (known) terms.now_ns = known->begin.accepted_ns;
  const auto made = rebuild(bytes, terms);
  expect(made ? made->machine != nullptr : !made.error().empty(), "a session is rebuilt, or refused in words");

  const auto record = unpack_record(bytes);
  if (!record) return;
  const auto packed = pack(*record);
  const auto again = unpack_record(packed);
  expect(again && pack(*again) == packed, "what was read can be written");
}
