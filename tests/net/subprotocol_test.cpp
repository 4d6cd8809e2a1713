#include "net/subprotocol.hpp"

#include <catch2/catch.hpp>

using parley::net::choose_subprotocol;

TEST_CASE("the first offered subprotocol that is no key is echoed") {
  CHECK(choose_subprotocol("map.realtime, map-api-key.secret") == "map.realtime");
  CHECK(choose_subprotocol("map-api-key.secret ,\tmap.realtime") == "map.realtime");
  CHECK(choose_subprotocol("openai-insecure-api-key.k,realtime,other") == "realtime");
  CHECK(choose_subprotocol(",, a ,") == "a");
}

TEST_CASE("a key is never echoed") {
  CHECK_FALSE(choose_subprotocol("map-api-key.secret"));
  CHECK_FALSE(choose_subprotocol("openai-insecure-api-key.secret, map-api-key.x"));
  CHECK_FALSE(choose_subprotocol(""));
  CHECK_FALSE(choose_subprotocol(" , "));
}
