#include "net/channel/outbox.hpp"

#include <catch2/catch.hpp>

using parley::net::text_frame;
using outbox = parley::net::outbox_of<text_frame>;

namespace {

text_frame of(std::size_t bytes) {
  return std::make_shared<const std::string>(bytes, 'x');
}

} // namespace

TEST_CASE("frames leave in order, one at a time") {
  outbox box(100);
  const auto first = of(10), second = of(20);
  box.push(first, 10);
  box.push(second, 20);
  CHECK(box.next() == first);
  CHECK_FALSE(box.next());
  CHECK(box.bytes() == 30);
  box.written();
  CHECK(box.bytes() == 20);
  CHECK(box.next() == second);
  box.written();
  CHECK(box.bytes() == 0);
  CHECK_FALSE(box.next());
}

TEST_CASE("the close frame comes after what is queued, once") {
  outbox box(100);
  box.push(of(10), 10);
  box.close(1000, "done");
  box.close(1011, "too late");
  box.push(of(10), 10);
  CHECK(box.closing());
  CHECK_FALSE(box.take_close());
  CHECK(box.next());
  CHECK_FALSE(box.take_close());
  box.written();
  const auto close = box.take_close();
  REQUIRE(close);
  CHECK(close->code == 1000);
  CHECK(close->reason == "done");
  CHECK_FALSE(box.take_close());
  CHECK_FALSE(box.next());
}

TEST_CASE("over the bound what waits is dropped and the close is 1008") {
  outbox box(100);
  box.push(of(60), 60);
  CHECK(box.next());
  box.push(of(40), 40);
  CHECK_FALSE(box.closing());
  box.push(of(1), 1);
  CHECK(box.closing());
  CHECK(box.bytes() == 60); // the frame in flight
  box.written();
  CHECK(box.bytes() == 0);
  CHECK_FALSE(box.next());
  REQUIRE(box.take_close()->code == 1008);
}

TEST_CASE("a single frame larger than the bound is written when nothing else waits") {
  outbox box(100);
  box.push(of(1000), 1000);
  CHECK_FALSE(box.closing());
  CHECK(box.next());
  box.push(of(1), 1);
  CHECK(box.closing());
}
