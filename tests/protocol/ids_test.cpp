#include "protocol/ids.hpp"

#include <catch2/catch.hpp>

#include <random>
#include <set>
#include <string_view>

namespace parley::protocol::test {

TEST_CASE("ids have their shape and differ") {
  random_source random = [state = std::mt19937_64(3)]() mutable { return state(); };
  auto shaped = [](std::string_view id, std::string_view prefix, std::string_view alphabet, std::size_t length) {
    return id.size() == prefix.size() + length && id.starts_with(prefix) &&
           id.find_first_not_of(alphabet, prefix.size()) == std::string_view::npos;
  };
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string one = make_session_id(random), two = make_ticket_id(random), three = make_response_id(random);
    CHECK(shaped(one, "sess_", "abcdefghijklmnopqrstuvwxyz234567", 20));
    CHECK(shaped(two, "ticket_", "0123456789abcdef", 12));
    CHECK(shaped(three, "resp_", "0123456789abcdef", 12));
    seen.insert({one, two, three});
  }
  CHECK(seen.size() == 3000);
}

TEST_CASE("legacy ids are milliseconds, bumped until unique") {
  legacy_ids ids;
  CHECK(ids.next(1'700'000'000'000) == "rt_1700000000000");
  CHECK(ids.next(1'700'000'000'000) == "rt_1700000000001");
  CHECK(ids.next(1'700'000'000'000) == "rt_1700000000002");
  CHECK(ids.next(1'700'000'000'010) == "rt_1700000000010");
  CHECK(ids.next(1'600'000'000'000) == "rt_1700000000011");
}

TEST_CASE("an asked session id is made harmless") {
  CHECK(sanitise_session_id("").empty());
  CHECK(sanitise_session_id("My-id_09") == "My-id_09");
  CHECK(sanitise_session_id("../a b\n\xc3\xa9") == "___a_b___");
  CHECK(sanitise_session_id(std::string(70, 'x')) == std::string(64, 'x'));
}

} // namespace parley::protocol::test
