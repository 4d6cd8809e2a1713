#include "net/channel/outbox.hpp"

#include <catch2/catch.hpp>

using parley::net::outbox;

namespace {

outbox::frame frame(std::size_t bytes) {
  return std::make_shared<const std::string>(bytes, 'x');
}

} // namespace

TEST_CASE("frames leave in order, one at a time") {
  outbox box(100);
  const auto first = frame(10), second = frame(20);
  box.push(first);
  box.push(second);
  CHECK(box.next() == first);
  CHECK(box.next() == nullptr);
  CHECK(box.bytes() == 30);
  box.written();
  CHECK(box.bytes() == 20);
  CHECK(box.next() == second);
  box.written();
  CHECK(box.bytes() == 0);
  CHECK(box.next() == nullptr);
}

TEST_CASE("the close frame comes after what is queued, once") {
  outbox box(100);
  box.push(frame(10));
  box.close(1000, "done");
  box.close(1011, "too late");
  box.push(frame(10));
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
  box.push(frame(60));
  CHECK(box.next());
  box.push(frame(40));
  CHECK_FALSE(box.closing());
  box.push(frame(1));
  CHECK(box.closing());
  CHECK(box.bytes() == 60); // the frame in flight
  box.written();
  CHECK(box.bytes() == 0);
  CHECK_FALSE(box.next());
  REQUIRE(box.take_close()->code == 1008);
}

TEST_CASE("a single frame larger than the bound is written when nothing else waits") {
  outbox box(100);
  box.push(frame(1000));
  CHECK_FALSE(box.closing());
  CHECK(box.next());
  box.push(frame(1));
  CHECK(box.closing());
}
