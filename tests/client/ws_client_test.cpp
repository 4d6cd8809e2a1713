#include "client/ws_client.hpp"

#include "base/assert.hpp"
#include "client/load.hpp"
#include "client/probe.hpp"
#include "tests/client/refusing_server.hpp"
#include "tests/client/scripted_server.hpp"

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include <chrono>
#include <random>
#include <sstream>
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

TEST_CASE("a refusal is told in the server's words, and nothing is waited for") {
  const std::string body = R"({"error":{"code":"invalid_api_key","message":"this API key\u001b is not known"}})"
                           "\r\n";
  const std::string words = "answered HTTP 401 instead of a WebSocket: " + body.substr(0, body.size() - 2);
  const refusing_server server("401 Unauthorized", body);

  SECTION("to a client") {
    const auto url = parse_server_urls(server.url(), {}, {}).value().front();
    boost::asio::io_context io{1};
    std::string why;
    ws_client client(io.get_executor(), {.opened = {}, .text = {}, .ended = [&](const auto& how) { why = how.error; }});
    client.connect(url, "mode=audio");
    io.run_for(std::chrono::seconds(20));
    CHECK(io.stopped());
    CHECK_THAT(why, Catch::EndsWith(words));
  }
  SECTION("to a probe") {
    chat_probe_options options;
    options.url = server.url();
    options.prompt = "hi";
    std::ostringstream out, err;
    CHECK(probe_chat(options, out, err) == 1);
    CHECK_THAT(err.str(), Catch::StartsWith("parley probe: ") && Catch::EndsWith(words + "\n"));
  }
  SECTION("to the load generator") {
    load_options options;
    options.url = server.url();
    options.modes = {"chat"};
    options.sessions = 2;
    options.seconds = 15;
    options.ramp = 0;
    for (const char* dialect : {"parley", "openai"}) {
      options.dialect = dialect;
      if (options.dialect == "openai") options.modes = {"audio"};
      std::ostringstream out, err;
      const auto begun = std::chrono::steady_clock::now();
      CHECK(load(options, out, err) == 1);
      CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(10));
      CHECK_THAT(err.str(), Catch::Contains(words + "\n") && Catch::EndsWith("2 connection_failed\n"));
    }
  }
}

TEST_CASE("a long or empty refusal is told in part") {
  const auto told = [](const std::string& body) {
    const refusing_server server("503 Service Unavailable", body);
    boost::asio::io_context io{1};
    std::string why;
    ws_client client(io.get_executor(), {.opened = {}, .text = {}, .ended = [&](const auto& how) { why = how.error; }});
    client.connect(parse_server_urls(server.url(), {}, {}).value().front(), "mode=audio");
    io.run_for(std::chrono::seconds(20));
    return why.substr(why.find("answered"));
  };
  CHECK(told("") == "answered HTTP 503 instead of a WebSocket");
  CHECK(told(" \n") == "answered HTTP 503 instead of a WebSocket");
  CHECK(told(std::string(5000, 'x')) == "answered HTTP 503 instead of a WebSocket: " + std::string(1000, 'x'));
}
