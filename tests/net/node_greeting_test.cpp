#include "net/cluster/node_greeting.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

TEST_CASE("a greeting is read as it was written") {
  const auto block = node_greeting("a worker joins");
  REQUIRE(block.size() == node_greeting_bytes);
  const auto found = read_node_greeting(block);
  REQUIRE(found);
  CHECK(found->same_version);
  CHECK(found->words == "a worker joins");
  CHECK(read_node_greeting(node_greeting(""))->words.empty());
  CHECK(read_node_greeting(node_greeting(std::string(1000, 'x')))->words.size() < node_greeting_bytes);
}

TEST_CASE("another version is known as such") {
  auto block = node_greeting("a worker joins");
  block.replace(block.find(" a worker"), 2, "9 ");
  const auto found = read_node_greeting(block);
  REQUIRE(found);
  CHECK_FALSE(found->same_version);
  CHECK(version_mismatch(found->version).find(found->version) != std::string::npos);
}

TEST_CASE("strangers are known by their first bytes") {
  for (std::size_t size = 0; size < 20; ++size) CHECK(may_be_node_greeting(node_greeting("hello").substr(0, size)));
  CHECK_FALSE(may_be_node_greeting("G"));
  CHECK_FALSE(may_be_node_greeting("parley-nodes"));
  CHECK_FALSE(read_node_greeting("parley-node"));
  CHECK(describe_unknown_peer("HTTP/1.1 400 Bad Request").find("web server") != std::string::npos);
  CHECK(describe_unknown_peer("\x15\x03\x03").find("TLS") != std::string::npos);
  CHECK(describe_unknown_peer("SSH-2.0-").find("does not speak") != std::string::npos);
}
