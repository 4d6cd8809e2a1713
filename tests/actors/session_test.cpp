#include "protocol/media/pcm.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using namespace parley::tests;
using nlohmann::json;

TEST_CASE("an audio session goes its whole way") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect("audio");
  client.link->next("session.queue_done");
  const auto created = client.init(R"({"system_prompt":"Hi"})");
  CHECK(created["session_id"].get<std::string>().starts_with("sess_"));
  CHECK(created["prompt_length"] == 12);
  const auto frame = append_frame();
  for (int step = 0; step < 3; ++step) {
    client.send_text(frame);
    const auto delta = client.link->next("response.output.delta");
    CHECK(delta["kind"] == "listen");
    CHECK(delta["chunk_index"] == step);
    CHECK(delta["input_id"] == "input_" + std::to_string(step + 1));
    CHECK(delta["metrics"]["kv_cache_length"] == 24);
    CHECK(delta["metrics"].contains("wall_clock_ms"));
    CHECK(delta["server_send_ts"].get<double>() > 1.6e9);
  }
  CHECK(client.close_session() == "user_stop");
  CHECK(client.link->closed() == 1000);
  CHECK(core.all_free());
  CHECK(script.eventually([](const auto& s) { return s.open_sessions() == 0; }));
}

TEST_CASE("the context is full where a unit no longer fits by the engine's own account") {
  stub_script script;
  script.report({8192 - 12 - 20 + 1, 0, false}); // after a prompt of 12 rows and with room for 20 tokens
  test_server core;
  core.add_up(script);
  auto client = core.connect("audio");
  client.link->next("session.queue_done");
  client.init();
  client.send_text(append_frame());
  CHECK(client.link->next("session.closed")["reason"] == "context_full");
}

TEST_CASE("a session of the legacy dialect goes its whole way") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect("audio");
  client.send_text(R"({"type":"session.update","session":{"instructions":"Hi"}})");
  CHECK(client.link->next("session.created")["session_id"].get<std::string>().starts_with("rt_"));
  auto frame = append_frame();
  frame = R"({"type":"input_audio_buffer.append","audio":)" + json::parse(frame)["input"]["audio"].dump() + "}";
  client.send_text(frame);
  CHECK(client.link->next("response.listen")["kv_cache_length"] == 24);
  CHECK(client.close_session() == "stopped");
  CHECK(core.all_free());
}

TEST_CASE("a chat session answers in deltas, turn after turn") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect("chat");
  CHECK(client.init()["mode"] == "turn_based");
  for (int turn = 0; turn < 2; ++turn) {
    client.send_text(chat_frame("Hi"));
    CHECK(client.link->next("response.output.delta")["text"] == "Hello ");
    CHECK(client.link->next("response.output.delta")["text"] == "there.");
    const auto done = client.link->next("response.done");
    CHECK(done["text"] == "Hello there.");
    CHECK(done["reason"] == "turn_end");
  }
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
}

TEST_CASE("what is spoken reaches the client: text, then sound") {
  stub_script script;
  const auto sound = std::make_shared<const std::vector<float>>(24'000, 0.5f);
  script.answer_units_with([&](conversation::step_output delta, const stub_script::sink& tell) {
    delta.kind = conversation::output_kind::text;
    delta.text = "Yes";
    delta.last = false;
    tell(conversation::step_output(delta));
    delta.kind = conversation::output_kind::audio;
    delta.audio = sound;
    delta.first = false;
    delta.last = delta.end_of_turn = true;
    tell(std::move(delta));
  });
  test_server core;
  core.add_up(script);
  auto client = core.connect();
  client.init();
  const auto text = client.step();
  CHECK(text["text"] == "Yes");
  CHECK_FALSE(text.contains("end_of_turn"));
  const auto audio = client.link->next("response.output.delta");
  CHECK(audio["kind"] == "audio");
  CHECK(audio["audio"].get<std::string>().size() == 24'000 * 4 / 3 * 4);
  CHECK(audio["response_id"] == text["response_id"]);
  CHECK(audio["end_of_turn"] == true);
  client.close_session();
}

TEST_CASE("the credit of every frame comes back, of bad ones too") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect();
  std::size_t sent = 0;
  for (const std::string frame :
       {R"({"type":"session.init","payload":{}})", R"({"type":"nonsense"})", R"([1])", R"({"type":1})"}) {
    sent += frame.size();
    client.send_text(frame);
  }
  CHECK(client.link->eventually_taken(sent));
  CHECK(client.link->next("error")["error"]["code"] == "unknown_event");
  client.send_text("no JSON");
  CHECK(client.link->closed() == 1003);
  CHECK(client.link->eventually_taken(sent + 7));
  client.send_text("and more");
  CHECK(client.link->eventually_taken(sent + 7 + 8));
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a binary frame closes with 1003") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect();
  client.init();
  client.handle->binary();
  CHECK(client.link->closed() == 1003);
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("an id that is in use is refused, and free again afterwards") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto first = core.connect("audio", {}, "my id");
  CHECK(first.init()["session_id"] == "my_id");
  auto second = core.connect("audio", {}, "my_id");
  CHECK(second.link->next("error")["error"]["code"] == "invalid_payload");
  CHECK(second.link->closed() == 1008);
  second.vanish();
  first.close_session();
  CHECK(core.all_free());
  auto third = core.connect("audio", {}, "my id");
  CHECK(third.init()["session_id"] == "my_id");
  third.close_session();
}

TEST_CASE("an operator closes a session by its id") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect();
  const std::string id = client.init()["session_id"];
  const auto close = [&](const std::string& which) {
    auto answer = actors::close_answer::unknown;
    core.core().close_session(which, "operator", {"", true}, [&](actors::close_answer told) { answer = told; });
    return answer == actors::close_answer::closed;
  };
  CHECK(close(id));
  CHECK(client.link->next("session.closed")["reason"] == "operator");
  CHECK(client.link->closed() == 1000);
  CHECK(close(id));
  client.vanish();
  CHECK(core.all_free());
  CHECK(close(id));
  CHECK_FALSE(close("sess_nobody"));
}

TEST_CASE("without a worker clients are sent away; while the first one loads they wait for it") {
  stub_script script;
  script.hold_loading();
  test_server core;
  CHECK(core.core().ready().reason == "no worker is up");
  auto sent_away = core.connect();
  CHECK(sent_away.link->next("error")["error"]["code"] == "service_unavailable");
  CHECK(sent_away.link->closed() == 1013);
  CHECK(core.core().loading());
  core.add(script);
  core.wait_for(actors::worker_state::loading);
  CHECK(core.core().ready().reason == "the model is still being loaded");
  CHECK(core.core().loading());
  auto early = core.connect();
  CHECK(early.link->next("session.queued")["position"] == 1);
  script.allow_load();
  core.wait_for(actors::worker_state::up);
  CHECK(core.core().ready().ready);
  CHECK_FALSE(core.core().loading());
  auto late = core.connect();
  late.init();
  late.close_session();
  early.link->next("session.queue_done");
  early.init();
  CHECK(early.close_session() == "user_stop");
}

TEST_CASE("the voices of sessions that wait for a slot are counted, for their owner and for all") {
  auto settings = test_server::quick_settings();
  settings.limits.kept_bytes = 3 * 480'000 * sizeof(float);
  settings.limits.kept_bytes_per_client = 2 * 480'000 * sizeof(float);
  stub_script script(1);
  test_server core(settings);
  core.add_up(script);
  auto busy = core.connect();
  busy.init();
  std::string init = R"({"type":"session.init","payload":{"ref_audio":")";
  protocol::append_samples(std::vector<float>(480'000), init); // 30 s
  init += "\"}}";
  const auto wait_with_voice = [&](const std::string& key = "") {
    auto client = core.connect("audio", {}, {}, {}, key);
    client.link->next("session.queued");
    client.send_text(init);
    return client;
  };
  const auto waits = [](test_client& client) {
    client.send_text("{}"); // answered behind the init
    return client.link->next("error")["error"]["code"] == "missing_field";
  };
  auto first = wait_with_voice(), second = wait_with_voice();
  CHECK(waits(first));
  CHECK(waits(second));
  first.send_text(init); // instead of the one that it has
  CHECK(waits(first));
  auto third = wait_with_voice();
  CHECK(third.link->closed() == 1013);
  auto other = wait_with_voice("b");
  CHECK(waits(other));
  auto another = wait_with_voice("c");
  CHECK(another.link->closed() == 1013);
  third.vanish();
  another.vanish();
  second.vanish();
  CHECK(eventually([&] { return core.status()["queue"]["length"] == 2; }));
  auto fourth = wait_with_voice();
  CHECK(waits(fourth));
}

TEST_CASE("a session ends with its clock") {
  auto settings = test_server::quick_settings();
  settings.limits.audio_seconds = 0.1;
  stub_script script;
  test_server core(settings);
  core.add_up(script);
  auto client = core.connect();
  CHECK(client.link->next("session.closed")["reason"] == "timeout");
  CHECK(client.link->closed() == 1000);
  client.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a client that stops reading and is cut off gives its slot back") {
  stub_script script(1);
  test_server core;
  core.add_up(script);
  // net/ closes such a link with 1008 and reports the loss of the socket while answers are still on their way.
  auto slow = core.connect();
  slow.init();
  for (int second = 0; second < 20; ++second) slow.send_text(append_frame());
  slow.vanish();
  auto next = core.connect();
  next.init();
  next.close_session();
  CHECK(core.all_free());
}
