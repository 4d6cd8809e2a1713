#include "base/assert.hpp"
#include "tests/net/server_fixture.hpp"

#include <boost/assert.hpp>
#include <catch2/catch.hpp>

// Not for sanitized builds, which abort.

using namespace parley;
using namespace parley::net;

TEST_CASE("an assertion of Boost's ends the connection whose handler broke it, in words, and is counted") {
  static std::string condition;
  base::set_violation_handler([](const base::assertion_site& site) noexcept { condition = site.condition; });
  const auto before = base::violation_count();
  {
    server_fixture fixture({}, 1);
    fixture.gateway.on_text = [](echo_gateway::session& session, std::string&& frame) {
      BOOST_ASSERT(frame != "break");
      session.link->taken(frame.size());
      session.link->send(std::make_shared<const std::string>(std::move(frame)));
    };
    wire_client bystander = fixture.open();
    wire_client client = fixture.open();
    client.send_frame(wire_client::text, "break");
    CHECK(client.ended());
    wire_client another = fixture.open();
    another.send_frame(wire_client::text, "break");
    CHECK(another.ended());
    bystander.send_frame(wire_client::text, "still here");
    CHECK(bystander.read_data().payload == "still here");
  }
  base::set_violation_handler(nullptr);
  CHECK(condition == R"(frame != "break")");
  CHECK(base::violation_count() == before + 2);
}
