#include "config/load.hpp"
#include "protocol/speech/sound.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <vector>

using namespace parley;
using namespace parley::tests;
using nlohmann::json;

namespace {

test_client connect(test_server& to, actors::openai_dialect spoken = actors::openai_dialect::realtime) {
  auto link = std::make_shared<recording_link>();
  actors::connection_info info;
  info.remote = "test";
  info.accepted = std::chrono::steady_clock::now();
  info.realtime = actors::realtime_request{"any", true, spoken};
  return {link, to.core().admit(std::move(info), link)};
}

void ask(test_client& client) {
  client.send_text(R"({"type":"conversation.item.create","item":{"type":"message","role":"user",
                       "content":[{"type":"input_text","text":"Hi"}]}})");
  client.send_text(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
}

std::string spoken(double seconds) {
  std::vector<float> samples(static_cast<std::size_t>(seconds * protocol::speech::model_output_rate));
  for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = 0.3f * std::sin(0.05f * static_cast<float>(i));
  protocol::speech::sound_encoder encode({});
  return R"({"type":"input_audio_buffer.append","audio":")" + encode.feed(samples) + R"("})";
}

} // namespace

TEST_CASE("a realtime response is a chat session of its own") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = connect(core);
  CHECK(client.link->next("session.created")["session"]["model"] == "any");
  for (int i = 0; i < 3; ++i) {
    ask(client);
    CHECK(client.link->next("response.created")["response"]["status"] == "in_progress");
    const auto done = client.link->next("response.done")["response"];
    CHECK(done["status"] == "completed");
    CHECK(done["output"][0]["content"][0]["text"] == "Hello there.");
    CHECK(core.all_free());
  }
  client.vanish();
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0; }));
}

TEST_CASE("a realtime client that vanishes gives back what its sessions held") {
  stub_script script;
  script.answer_with([](const auto&, const auto&) {}); // never
  test_server core;
  core.add_up(script);
  auto asks = connect(core);
  ask(asks);
  auto speaks = connect(core);
  speaks.send_text(spoken(1));
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 2; }));
  asks.vanish();
  speaks.vanish();
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0; }));
  CHECK(core.all_free());
}

TEST_CASE("a session that a client has opened for nothing counts as one of its starts") {
  struct counted final : actors::start_limit {
    bool left(time_point) override { return starts < 2; }
    void count(time_point) override { ++starts; }
    std::atomic<int> starts = 0;
  };
  const auto starts = std::make_shared<counted>();
  stub_script script(1);
  test_server core;
  core.add_up(script);
  auto holds = core.connect("chat"); // the only slot
  holds.init();
  const auto link = std::make_shared<recording_link>();
  actors::connection_info info;
  info.remote = "test";
  info.accepted = std::chrono::steady_clock::now();
  info.realtime = actors::realtime_request{"any", true};
  info.starts = starts;
  test_client client{link, core.core().admit(std::move(info), link)};
  for (int i = 1; i <= 2; ++i) {
    client.send_text(R"({"type":"response.create"})");
    client.send_text(R"({"type":"response.cancel"})");
    CHECK(client.link->next("response.done")["response"]["status"] == "cancelled");
    CHECK(eventually([&] { return starts->starts == i; }));
  }
  client.send_text(R"({"type":"response.create"})");
  CHECK(client.link->next("response.done")["response"]["status_details"]["error"]["code"] == "rate_limit_exceeded");
  holds.close_session();
  starts->starts = 0;
  ask(client);
  CHECK(client.link->next("response.done")["response"]["status"] == "completed");
  CHECK(starts->starts == 0); // it was not for nothing
  client.vanish();
}

TEST_CASE("a realtime response survives the loss of its worker") {
  stub_script first, second;
  first.answer_with([](const conversation::command& order, const auto&) {
    if (std::holds_alternative<conversation::submit_turn>(order)) throw std::runtime_error("the device is gone");
  });
  test_server core;
  core.add_up(first);
  auto client = connect(core);
  ask(client);
  client.link->next("response.created");
  core.wait_for(actors::worker_state::down);
  core.add_up(second);
  CHECK(client.link->next("response.done")["response"]["status"] == "completed");
  client.vanish();
}

TEST_CASE("without a worker a realtime response fails, and the connection stays") {
  stub_script script;
  test_server core;
  auto client = connect(core);
  ask(client);
  const auto failed = client.link->next("response.done")["response"];
  CHECK(failed["status"] == "failed");
  CHECK(failed["status_details"]["error"]["code"] == "server_busy");
  core.add_up(script);
  ask(client);
  CHECK(client.link->next("response.done")["response"]["status"] == "completed");
  client.vanish();
}

TEST_CASE("realtime connections are told when the server shuts down, and others end with it") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = connect(core);
  client.link->next("session.created");
  auto speaks = connect(core);
  speaks.send_text(spoken(1));
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 1; }));
  core.core().drain();
  CHECK(client.link->next("error")["error"]["code"] == "session_expired");
  CHECK(client.link->closed() == 1001);
  CHECK(speaks.link->closed() == 1001);
  auto stays = connect(core);
  stays.link->next("session.created");
  core.core().stop();
  CHECK(stays.link->closed() == 1011);
}

TEST_CASE("a live session says what it is asked to, and gives back what its sessions held") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = connect(core, actors::openai_dialect::live);
  client.send_text(R"({"type":"session.start","session":{"model":"any"}})");
  CHECK(client.link->next("session.started")["session"]["model"] == "any");
  CHECK(script.open_sessions() == 1);
  client.send_text(R"({"type":"session.commentary.append","content":"Greet.","delegation_id":null})");
  CHECK(client.link->next("session.output_transcript.delta")["delta"] == "Hello there.");
  client.send_text(R"({"type":"session.close"})");
  CHECK(client.link->next("session.closed")["reason"] == "close_requested");
  CHECK(client.link->closed() == 1000);
  client.vanish();
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0; }));
  CHECK(core.all_free());

  auto vanishes = connect(core, actors::openai_dialect::live);
  vanishes.send_text(R"({"type":"session.start","session":{"model":"any"}})");
  vanishes.link->next("session.started");
  vanishes.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a binary frame ends a realtime connection") {
  test_server core;
  auto client = connect(core);
  client.handle->binary();
  CHECK(client.link->closed() == 1003);
  client.vanish();
}

TEST_CASE("voices by name are read when the server starts, or it does not start") {
  auto settings = test_server::quick_settings();
  for (const auto* wrong : {"marin", "=tests/data/question.wav", "marin=tests/data/none.wav", "marin=README.md"}) {
    settings.openai.voices = wrong;
    CHECK_THROWS_AS(test_server(settings), config::settings_error);
  }
  settings.openai.voices = "marin=tests/data/question.wav  cedar=tests/data/question.wav";
  stub_script script;
  test_server core(settings);
  core.add_up(script);
  auto client = connect(core);
  client.send_text(R"({"type":"session.update","session":{"type":"realtime","audio":{"output":{"voice":"cedar"}}}})");
  client.send_text(spoken(1));
  REQUIRE(script.eventually([](const auto& s) { return s.template all<conversation::open_duplex>().size() == 1; }));
  CHECK(script.all<conversation::open_duplex>()[0].voice != nullptr);
  client.vanish();
}
