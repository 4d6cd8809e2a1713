#include "actors/session/session_meter.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <future>

using namespace parley;
using namespace parley::tests;

// What an operator sees of a server and can do with it.

namespace {

test_client connect_as(test_server& core, const std::string& address, const std::string& key,
                       const std::string& mode = "audio") {
  auto link = std::make_shared<recording_link>();
  actors::connection_info info;
  info.mode = mode;
  info.remote = info.group = address;
  info.key = key;
  info.accepted = std::chrono::steady_clock::now();
  return {link, core.core().admit(std::move(info), link)};
}

std::string metrics_of(test_server& core) {
  std::promise<std::string> answer;
  core.core().metrics([&](std::string text) { answer.set_value(std::move(text)); });
  return answer.get_future().get();
}

bool drain(test_server& core, std::uint64_t worker, bool wanted) {
  std::promise<bool> answer;
  core.core().drain_worker(worker, wanted, [&](bool known) { answer.set_value(known); });
  return answer.get_future().get();
}

/// The value of a series in the text of the metrics; -1 if it is missing.
double value(const std::string& text, const std::string& series) {
  const auto at = text.find("\n" + series + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + series.size() + 2));
}

} // namespace

TEST_CASE("the metrics tell what sessions did") {
  stub_script script(2);
  script.answer_units_with([](conversation::step_output answer, const stub_script::sink& tell) {
    answer.kind = conversation::output_kind::text;
    answer.text = "yes";
    answer.used = {1, 10, 0, 5, 0};
    answer.metrics.prefill_ms = 40;
    answer.metrics.llm_ms = 300;
    tell(std::move(answer));
  });
  test_server core;
  core.add_up(script);
  auto client = connect_as(core, "a", "ann");
  client.init();
  client.step();
  client.send_text(R"({"type":"nonsense"})");
  client.link->next("error");
  // A worker's report arrives a moment later.
  auto text = metrics_of(core);
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
       value(text, R"(parley_kv_pages{state="used",worker="1"})") != 1 && std::chrono::steady_clock::now() < until;)
    text = metrics_of(core);
  CHECK(value(text, R"(parley_sessions{mode="audio",state="active"})") == 1);
  CHECK(value(text, R"(parley_sessions{mode="chat",state="active"})") == 0);
  CHECK(value(text, R"(parley_queue_length)") == 0);
  CHECK(value(text, R"(parley_queue_wait_seconds_count)") == 1);
  CHECK(value(text, R"(parley_unit_latency_seconds_count{mode="audio",worker="1"})") == 1);
  CHECK(value(text, R"(parley_units_total{answer="speak",worker="1"})") == 1);
  CHECK(value(text, R"(parley_units_total{answer="listen",worker="1"})") == 0);
  CHECK(value(text, R"(parley_tokens_total{direction="input",kind="audio",worker="1"})") == 10);
  CHECK(value(text, R"(parley_tokens_total{direction="input",kind="text",worker="1"})") == 13); // 12 from the prompt
  CHECK(value(text, R"(parley_tokens_total{direction="output",kind="text",worker="1"})") == 5);
  CHECK(value(text, R"(parley_stage_seconds_sum{stage="llm",worker="1"})") == Approx(0.3));
  CHECK(value(text, R"(parley_stage_seconds_count{stage="tts",worker="1"})") == 0);
  CHECK(value(text, R"(parley_errors_total{code="unknown_event"})") == 1);
  CHECK(value(text, R"(parley_slots_wanted)") == 1);
  CHECK(value(text, R"(parley_worker_up{worker="1"})") == 1);
  CHECK(value(text, R"(parley_worker_info{device="none",node="local",worker="1"})") == 1);
  CHECK(value(text, R"(parley_worker_slots{state="offered",worker="1"})") == 2);
  CHECK(value(text, R"(parley_worker_slots{state="busy",worker="1"})") == 1);
  CHECK(value(text, R"(parley_kv_pages{state="used",worker="1"})") == 1);
  CHECK(value(text, R"(parley_kv_pages{state="free",worker="1"})") == 99);
  CHECK(value(text, R"(parley_voice_cache_total{result="hit",worker="1"})") == 3);
  CHECK(value(text, R"(parley_voice_cache_total{result="miss",worker="1"})") == 1);
  CHECK(value(text, R"(parley_prompt_cache_total{result="hit",worker="1"})") == 5);
  CHECK(value(text, R"(parley_prompt_cache_total{result="miss",worker="1"})") == 2);
  CHECK(value(text, R"(parley_engine_work_seconds_total{work="unit",worker="1"})") == Approx(1.5));
  CHECK(value(text, R"(parley_engine_work_seconds_total{work="chat",worker="1"})") == Approx(0.25));
  CHECK(value(text, R"(parley_engine_work_seconds_total{work="replay",worker="1"})") == 0);
  CHECK(value(text, R"(parley_engine_core_wait_seconds_total{device="cpu",worker="1"})") == 0);
  CHECK(value(text, R"(parley_late_units_total{cause="background",worker="1"})") == 7);
  CHECK(value(text, R"(parley_late_units_total{cause="itself",worker="1"})") == 0);
  CHECK(value(text, R"(parley_worker_busy_seconds_total{worker="1"})") > 0);
  CHECK(value(text, R"(parley_deadline_misses_total{worker="1"})") >= 0);
  CHECK(value(text, R"(parley_dropped_units_total)") == 0);
  client.close_session();
  CHECK(core.all_free());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  do text = metrics_of(core);
  while (value(text, R"(parley_sessions_ended_total{mode="audio",reason="user_stop"})") < 1 &&
         std::chrono::steady_clock::now() < deadline);
  CHECK(value(text, R"(parley_sessions_ended_total{mode="audio",reason="user_stop"})") == 1);
  CHECK(value(text, R"(parley_key_tokens_total{direction="input",key="ann"})") == 23);
  CHECK(value(text, R"(parley_sessions{mode="audio",state="active"})") == 0);
}

TEST_CASE("as many slots are wanted as sessions hold and clients wait for, also when the worker is gone") {
  stub_script script(1);
  auto settings = test_server::quick_settings();
  settings.queue.no_worker_seconds = 20;
  test_server core(settings);
  CHECK(value(metrics_of(core), "parley_slots_wanted") == 0);
  core.add_up(script);
  auto first = core.connect();
  first.init();
  CHECK(value(metrics_of(core), "parley_slots_wanted") == 1);
  auto second = core.connect();
  second.link->next("session.queued");
  CHECK(value(metrics_of(core), "parley_slots_wanted") == 2);
  script.die();
  first.send_text(append_frame());
  CHECK(eventually([&] { return value(metrics_of(core), R"(parley_worker_up{worker="1"})") == 0; }));
  CHECK(value(metrics_of(core), "parley_slots_wanted") == 2);
  second.vanish();
  first.vanish();
  CHECK(eventually([&] { return value(metrics_of(core), "parley_slots_wanted") == 0; }));
}

TEST_CASE("the listen that ends a turn in its last second is no unit of its own") {
  stub_script script;
  script.answer_units_with([](conversation::step_output answer, const stub_script::sink& tell) {
    answer.kind = conversation::output_kind::text;
    answer.text = "yes";
    answer.end_of_turn = true;
    tell(std::move(answer));
  });
  test_server core;
  core.add_up(script);
  auto client = connect_as(core, "a", "ann");
  client.init(R"({"config":{"listen_at_turn_end":true}})");
  client.step();
  CHECK(client.link->next("response.output.delta")["kind"] == "listen");
  const auto text = metrics_of(core);
  CHECK(value(text, R"(parley_units_total{answer="speak",worker="1"})") == 1);
  CHECK(value(text, R"(parley_units_total{answer="listen",worker="1"})") == 0);
  client.close_session();
  CHECK(core.all_free());
}

TEST_CASE("a reason that a client made up is no label") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto client = core.connect();
  client.init();
  client.send_text(R"({"type":"session.close","reason":"my_very_own_word"})");
  CHECK(client.link->next("session.closed")["reason"] == "my_very_own_word");
  client.vanish();
  CHECK(core.all_free());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::string text;
  do text = metrics_of(core);
  while (value(text, R"(parley_sessions_ended_total{mode="audio",reason="other"})") < 1 &&
         std::chrono::steady_clock::now() < deadline);
  CHECK(text.find("my_very_own_word") == std::string::npos);
  CHECK(value(text, R"(parley_sessions_ended_total{mode="audio",reason="other"})") == 1);
}

TEST_CASE("a drained worker finishes what it has, and takes sessions again when it is resumed") {
  stub_script script(2);
  test_server core;
  core.add_up(script);
  auto first = core.connect();
  first.init();
  CHECK(drain(core, 1, true));
  core.wait_for(actors::worker_state::draining);
  CHECK_FALSE(core.core().ready().ready);
  CHECK(core.status()["workers"][0]["state"] == "draining");
  CHECK(value(metrics_of(core), R"(parley_worker_slots{state="offered",worker="1"})") == 0);
  first.step();
  auto second = core.connect();
  CHECK(second.link->next("session.queued")["position"] == 1);
  CHECK(drain(core, 1, false));
  core.wait_for(actors::worker_state::up);
  second.link->next("session.queue_done");
  CHECK(core.core().ready().ready);
  CHECK_FALSE(drain(core, 2, true));
  first.close_session();
  second.vanish();
  CHECK(core.all_free());
}

TEST_CASE("a worker that is drained while it loads comes up drained") {
  stub_script script;
  script.hold_loading();
  test_server core;
  core.add(script);
  core.wait_for(actors::worker_state::loading);
  CHECK(drain(core, 1, true));
  script.allow_load();
  core.wait_for(actors::worker_state::draining);
  CHECK_FALSE(core.core().ready().ready);
  CHECK(drain(core, 1, false));
  core.wait_for(actors::worker_state::up);
  CHECK(core.core().ready().ready);
}

TEST_CASE("each key sees and closes its own sessions") {
  stub_script script;
  test_server core;
  core.add_up(script);
  auto anns = connect_as(core, "192.0.2.1", "ann");
  auto bobs = connect_as(core, "192.0.2.2", "bob", "chat");
  const std::string id = anns.init()["session_id"];
  bobs.init();
  const auto seen_by = [&](const actors::principal& who) { return nlohmann::json::parse(core.core().sessions(who)); };
  const auto all = seen_by({"", true});
  CHECK(all.size() == 2);
  const auto anns_own = seen_by({"ann", false});
  REQUIRE(anns_own.size() == 1);
  CHECK(anns_own[0]["session_id"] == id);
  CHECK(anns_own[0]["mode"] == "audio");
  CHECK(anns_own[0]["state"] == "active");
  CHECK(anns_own[0]["address"] == "192.0.2.1");
  CHECK(anns_own[0]["key"] == "ann");
  CHECK(anns_own[0]["age_s"] >= 0);
  CHECK(seen_by({"carl", false}).empty());
  const auto close = [&](const std::string& by) {
    auto told = actors::close_answer::unknown;
    core.core().close_session(id, "operator", {by, false}, [&](actors::close_answer answer) { told = answer; });
    return told;
  };
  CHECK(close("bob") == actors::close_answer::forbidden);
  CHECK(close("ann") == actors::close_answer::closed);
  CHECK(anns.link->next("session.closed")["reason"] == "operator");
  anns.vanish();
  bobs.close_session();
  CHECK(core.all_free());
  CHECK(close("bob") == actors::close_answer::forbidden); // also forbidden once the session has closed
  CHECK(close("ann") == actors::close_answer::closed);
}

TEST_CASE("one client waits with so many sessions at a time") {
  auto settings = test_server::quick_settings();
  settings.limits.waiting_per_address = 2;
  settings.limits.waiting_per_key = 3;
  stub_script script(1);
  test_server core(settings);
  core.add_up(script);
  auto holder = connect_as(core, "a", "ann"); // has a slot, so it does not count as waiting
  holder.link->next("session.queue_done");
  auto a1 = connect_as(core, "a", "ann");
  a1.link->next("session.queued");
  auto a2 = connect_as(core, "a", "ann");
  a2.link->next("session.queued");
  auto a3 = connect_as(core, "a", "ann");
  CHECK(a3.link->next("error")["error"]["code"] == "queue_full");
  CHECK(a3.link->closed() == 1013);
  auto b1 = connect_as(core, "b", "ann");
  b1.link->next("session.queued");
  auto c1 = connect_as(core, "c", "ann");
  CHECK(c1.link->next("error")["error"]["code"] == "queue_full");
  auto c2 = connect_as(core, "c", "bob");
  c2.link->next("session.queued");
  a1.vanish();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (core.status()["queue"]["length"] != 3 && std::chrono::steady_clock::now() < deadline) {
  }
  a1 = connect_as(core, "a", "bob");
  a1.link->next("session.queued");
  for (auto* client : {&holder, &a1, &a2, &a3, &b1, &c1, &c2}) client->vanish();
  CHECK(core.all_free());
}

TEST_CASE("a worker that has left, or was replaced, leaves no series behind") {
  actors::meters counted;
  const auto lines = [&] {
    const auto text = counted.text();
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto before = lines();
  actors::session_meter session(counted);
  for (actors::worker_key key = 1; key <= 5; ++key) {
    session.runs_on(key);
    counted.describe(key, "node", "cpu");
    counted.gone(key);
    CHECK(counted.text().find("worker=\"" + std::to_string(key) + '"') != std::string::npos); // still listed
    counted.remove(key);
    counted.remove(key);
  }
  CHECK(counted.text().find("worker=\"4\"") == std::string::npos);
  CHECK(lines() > before); // a session still counts for the fifth worker
  session.runs_on(6);
  CHECK(counted.text().find("worker=\"5\"") == std::string::npos);
}
