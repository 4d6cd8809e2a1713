#include "net/descriptors.hpp"

#include "tests/net/scarce_descriptors.hpp"
#include "tests/net/server_fixture.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

TEST_CASE("connections leave a quarter of the descriptors to others") {
  CHECK(connections_within(10'000, 65'536) == 10'000);
  CHECK(connections_within(10'000, 1024) == 768);
  CHECK(connections_within(10, 1024) == 10);
  CHECK(connections_within(10'000, 1) == 1);
}

TEST_CASE("the soft limit goes up to the hard one") {
  raise_descriptor_limit();
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  CHECK(limit.rlim_cur >= std::min<rlim_t>(limit.rlim_max, 1u << 20));
  CHECK(descriptor_limit() == std::min<rlim_t>(limit.rlim_cur, 1u << 20));
}

#ifndef __SANITIZE_ADDRESS__ // without a descriptor, UBSan fails to check the type of an exception
TEST_CASE("without descriptors new connections are closed at once, and taken again when there are some") {
  server_fixture fixture;
  wire_client open = fixture.connect();
  CHECK(open.get("/health").status == 200);
  {
    const scarce_descriptors scarce(1);
    wire_client late = fixture.connect(); // takes the last descriptor
    CHECK(late.ended());
    CHECK(open.get("/health").status == 200);
  }
  CHECK(fixture.connect().get("/health").status == 200);
}
#endif
