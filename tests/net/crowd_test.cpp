#include "net/crowd.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <vector>

using parley::net::crowd;

TEST_CASE("nobody is dropped from an empty crowd") {
  crowd all;
  CHECK_FALSE(all.whom_to_drop());
  all.remove(1);
  all.add(1, "a");
  all.remove(1);
  CHECK_FALSE(all.whom_to_drop());
  CHECK(all.size() == 0);
}

TEST_CASE("whoever has most connections loses the oldest of them") {
  crowd all;
  all.add(1, "a");
  CHECK(all.whom_to_drop() == 1);
  all.add(2, "b");
  CHECK(all.whom_to_drop() == 1); // of several that have most: the oldest connection
  all.add(3, "b");
  CHECK(all.whom_to_drop() == 2);
  all.remove(2);
  all.add(4, "c");
  CHECK(all.whom_to_drop() == 1);
  all.remove(1);
  CHECK(all.whom_to_drop() == 3);
}

TEST_CASE("the one to drop is that of a plain search, whatever comes and goes") {
  struct one {
    std::uint64_t id;
    std::string client;
  };
  std::mt19937 random(7);
  std::vector<one> there;
  crowd all;
  for (std::uint64_t id = 1; id <= 600; ++id) {
    if (random() % 3 != 0 || there.empty()) {
      there.push_back({id, std::string(1, static_cast<char>('a' + random() % 6))});
      all.add(id, there.back().client);
    } else {
      const auto which = there.begin() + static_cast<std::ptrdiff_t>(random() % there.size());
      all.remove(which->id);
      there.erase(which);
    }
    const auto has = [&](const one& of) {
      return std::count_if(there.begin(), there.end(), [&](const one& each) { return each.client == of.client; });
    };
    REQUIRE(all.size() == there.size());
    const auto most =
        std::max_element(there.begin(), there.end(), [&](const one& a, const one& b) { return has(a) < has(b); });
    REQUIRE(all.whom_to_drop() == (there.empty() ? std::nullopt : std::optional(most->id)));
  }
}
