#include "client/ws_client.hpp"

#include "base/assert.hpp"
#include "tests/client/scripted_server.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <vector>

using namespace parley::client;

TEST_CASE("a client may close while the server goes on speaking") {
  constexpr int rounds = 300;
  const auto before = parley::base::violation_count();
  std::vector<scripted_server::script> speakers;
  for (int round = 0; round < rounds; ++round) {
    speakers.emplace_back([round](scripted_server::peer& client) {
      std::mt19937 random(static_cast<unsigned>(round));
      for (int i = 0; i < 60; ++i) client.send(std::string(random() % 4000, 'x'));
      while (client.receive()) {
      }
    });
  }
  scripted_server server(std::move(speakers));
  const auto url = parse_server_urls(server.url(), {}, {}).value().front();
  for (int round = 0; round < rounds; ++round) {
    boost::asio::io_context io{1};
    int heard = 0;
    std::vector<std::string> ends;
    {
      ws_client client(io.get_executor(), {.opened = {},
                                           .text =
                                               [&](std::string_view) {
                                                 if (++heard == round % 50) client.close();
                                               },
                                           .ended = [&](const auto& how) { ends.push_back(how.error); }});
      client.connect(url, "mode=audio");
      if (round % 50 == 0) client.close();
      io.run();
    }
    CHECK(ends == std::vector<std::string>{""});
  }
  CHECK(parley::base::violation_count() == before);
}
