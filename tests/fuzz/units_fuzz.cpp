#include "actors/bytes/unit_bounds.hpp"
#include "actors/bytes/unit_codec.hpp"
#include "base/utf8.hpp"
#include "tests/fuzz/fuzz.hpp"

#include <string>
#include <variant>

// What another node says about an engine (actors/bytes/unit_codec): the first byte chooses what the others are.
namespace {

using namespace parley;

template<class Value>
void check(std::string_view bytes) {
  Value value{};
  if (!actors::unpack(bytes, value)) return;
  test::expect(actors::plausible(value), "what is read makes sense");
  const auto packed = actors::pack(value);
  Value again{};
  test::expect(actors::unpack(packed, again) && actors::pack(again) == packed, "what was read can be written");
}

void check_failure(std::string_view bytes) {
  const auto instead = actors::failure_instead(bytes);
  if (!instead) return;
  const auto* failed = std::get_if<conversation::failed>(&*instead);
  test::expect(failed && actors::plausible(*instead) && base::utf8::valid(failed->message), "a failure makes sense");
}

} // namespace

void parley::test::fuzz(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto kind = bytes.front();
  bytes.remove_prefix(1);
  switch (kind) {
  case 'o': return check<conversation::command>(bytes);
  case 'i': return check<inference::engine_info>(bytes);
  case 'c': return check<actors::worker_capacity>(bytes);
  default: check<conversation::event>(bytes); return check_failure(bytes);
  }
}
