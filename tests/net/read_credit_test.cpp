#include "net/channel/read_credit.hpp"

#include <catch2/catch.hpp>

using parley::net::read_credit;

TEST_CASE("credit ends with the frames") {
  read_credit credit(2, 1000);
  credit.spend(1);
  CHECK(credit.may_read());
  credit.spend(1);
  CHECK_FALSE(credit.may_read());
  credit.give_back(1);
  CHECK(credit.may_read());
}

TEST_CASE("credit ends with the bytes, and one frame may go over them") {
  read_credit credit(10, 1000);
  credit.spend(999);
  CHECK(credit.may_read());
  credit.spend(5000);
  CHECK_FALSE(credit.may_read());
  credit.give_back(999);
  CHECK_FALSE(credit.may_read());
  credit.give_back(5000);
  CHECK(credit.may_read());
}

TEST_CASE("giving back more than was spent gives no extra credit") {
  read_credit credit(1, 10);
  credit.give_back(5);
  credit.spend(1);
  CHECK_FALSE(credit.may_read());
}
