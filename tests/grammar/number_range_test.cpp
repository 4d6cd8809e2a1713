#include "grammar/number_range.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <random>
#include <string>

using namespace parley::grammar;

namespace {

number_range range_of(const char* low, const char* high, bool whole = false, std::int64_t step = 1) {
  return {in_units(read_decimal(low)).value, in_units(read_decimal(high)).value, whole, step};
}

std::string shortest(const number_range& of, const number_prefix& from = {}) {
  std::string out;
  const auto bytes = of.rest(from, &out);
  if (bytes == number_range::none) return "none";
  CHECK(bytes == out.size());
  return out;
}

} // namespace

TEST_CASE("decimals are exact") {
  CHECK(read_decimal("1.50e2") == read_decimal("150"));
  CHECK(read_decimal("-0.0") == read_decimal("0"));
  CHECK_FALSE(read_decimal("12345678901234567890123") == read_decimal("12345678901234567890124"));
  CHECK(read_decimal("1e-3") == read_decimal("0.001"));
  CHECK_FALSE(read_decimal("0.5").whole());
  CHECK(in_units(read_decimal("-0.0000000000000001")).value == -1); // rounded down
  CHECK_FALSE(in_units(read_decimal("1e400")).exact);
  CHECK(in_units(read_decimal("1e400")).value == in_units(read_decimal("1e34")).value);
}

TEST_CASE("the shortest number of a range, and the rest of one that has begun") {
  CHECK(shortest(range_of("0", "9")) == "0");
  CHECK(shortest(range_of("17", "230", true)) == "17");
  CHECK(shortest(range_of("0.1", "0.9")) == "0.1");
  CHECK(shortest(range_of("0.1", "0.9", true)) == "none");
  CHECK(shortest(range_of("17", "230", true), {false, false, 1, 0, 2}) == "0"); // 2: 20
  CHECK(shortest(range_of("17", "230", true), {false, false, 1, 0, 3}) == "0");
  CHECK(shortest(range_of("17", "19", true), {false, false, 1, 0, 2}) == "none");
  CHECK(shortest(range_of("-7", "-3", true)) == "none");
  CHECK(shortest(range_of("-7", "-3", true), {true, false, 0, 0, 0}) == "3");
  CHECK(shortest(range_of("99.95", "99.96"), {false, false, 2, 0, 99}) == ".95");
  CHECK(shortest(range_of("100", "200", true, 37), {false, false, 1, 0, 1}) == "11");
  CHECK(shortest(range_of("0.000000000000001", "0.000000000000001")) == "0.000000000000001");
}

TEST_CASE("every digit that may come leads into the range, and no other") {
  std::mt19937 random(11);
  for (int round = 0; round < 3000; ++round) {
    const auto low = static_cast<int>(random() % 400) - 200, high = low + static_cast<int>(random() % 30);
    const std::int64_t step = random() % 3 == 0 ? 1 + static_cast<std::int64_t>(random() % 7) : 1;
    const auto range = range_of(std::to_string(low).c_str(), std::to_string(high).c_str(), true, step);
    for (const bool negative : {false, true})
      for (std::uint64_t digit = 0; digit < 10; ++digit) {
        bool leads = false; // by trying all
        for (int value = low; value <= high; ++value) {
          const auto text = std::to_string(std::abs(value));
          leads = leads || (value % step == 0 && (value < 0) == negative && text[0] == static_cast<char>('0' + digit));
          leads = leads || (value == 0 && negative && digit == 0);
        }
        INFO(low << ".." << high << " by " << step << (negative ? " -" : " ") << digit);
        CHECK((range.rest({negative, false, 1, 0, digit}, nullptr) != number_range::none) == leads);
      }
  }
}
