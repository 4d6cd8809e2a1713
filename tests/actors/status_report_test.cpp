#include "actors/reports/status_report.hpp"

#include "actors/reports/demo_report.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

using namespace parley;
using namespace parley::tests;

TEST_CASE("the status tells workers, queue and sessions") {
  stub_script script(2);
  test_server core;
  core.add_up(script);
  auto audio = core.connect("audio");
  audio.init();
  auto chat = core.connect("chat");
  chat.link->next("session.queue_done");
  auto waiting = core.connect("video");
  waiting.link->next("session.queued");
  CHECK(core.status()["idle_workers"] == 0);
  const auto status = core.status();
  CHECK(status["queue_length"] == 1);
  CHECK(status["busy_workers"] == 1);
  CHECK(status["duplex_workers"] == 0);
  CHECK(status["total_workers"] == 1);
  const auto& worker = status["workers"].at(0);
  CHECK(worker["id"] == 1);
  CHECK(worker["node"] == "local");
  CHECK(worker["device"] == "none");
  CHECK(worker["slots"] == 2);
  CHECK(worker["busy"] == 2);
  CHECK(worker["state"] == "up");
  CHECK(worker["model"] == "stub");
  CHECK(status["queue"]["length"] == 1);
  CHECK(status["queue"]["waits"].size() == 1);
  CHECK(status["sessions"]["audio"]["active"] == 1);
  CHECK(status["sessions"]["chat"]["connected"] == 1);
  CHECK(status["sessions"]["video"]["queued"] == 1);
  for (auto* client : {&audio, &chat, &waiting}) client->vanish();
  CHECK(core.all_free());
  CHECK(core.status()["idle_workers"] == 1);
}

TEST_CASE("workers and queue are told in the words of the official demo, too") {
  stub_script script(2);
  test_server core;
  core.add_up(script);
  CHECK(core.status(actors::status_part::workers)["workers"][0]["status"] == "idle");
  auto audio = core.connect("audio");
  audio.init();
  auto chat = core.connect("chat");
  chat.link->next("session.queue_done");
  auto waiting = core.connect("video");
  const auto queued = waiting.link->next("session.queued");

  const auto workers = core.status(actors::status_part::workers);
  CHECK(workers["total"] == 1);
  const auto& worker = workers["workers"].at(0);
  CHECK(worker["worker_id"] == "1");
  CHECK(worker["status"] == "busy");
  CHECK(worker["busy"] == 2);
  CHECK_FALSE(worker.contains("gpu_id"));

  const auto queue = core.status(actors::status_part::queue);
  CHECK(queue["queue_length"] == 1);
  CHECK(queue["max_queue_size"] == 1000);
  const auto& item = queue["items"].at(0);
  CHECK(item["ticket_id"] == queued["ticket_id"]);
  CHECK(item["position"] == 1);
  CHECK(item["request_type"] == "omni_duplex");
  CHECK(item["estimated_wait_s"].get<double>() > 0);
  CHECK(item["wait_elapsed_s"].get<double>() >= 0);
  CHECK(item["enqueued_at"].get<std::string>().ends_with("Z"));
  CHECK(queue["running_tasks"].size() == 2);
  for (const auto& task : queue["running_tasks"]) {
    CHECK(task["worker_id"] == "1");
    CHECK(task["estimated_remaining_s"].get<double>() > 0);
  }
  for (auto* client : {&audio, &chat, &waiting}) client->vanish();
  CHECK(core.all_free());
}

TEST_CASE("times and devices of the demo's words") {
  using actors::worker_state;
  const actors::worker_view gpu{7, worker_state::loading, "box", "cuda:3", {}, ""};
  const actors::worker_view gone{8, worker_state::down, "box", "cuda:x", {}, "lost"};
  actors::server_snapshot of_two;
  of_two.workers = {gpu, gone};
  const auto workers = nlohmann::json::parse(actors::demo_workers(of_two));
  CHECK(workers["workers"][0]["gpu_id"] == 3);
  CHECK(workers["workers"][0]["status"] == "loading");
  CHECK_FALSE(workers["workers"][1].contains("gpu_id"));
  CHECK(workers["workers"][1]["status"] == "offline");
  actors::server_snapshot now;
  now.waiters = {{1, "ticket_a", protocol::mode::chat, 4.25}};
  now.waits_s = {90.5};
  now.conversations = {{7, protocol::mode::audio, 30, 60}};
  const auto queue = nlohmann::json::parse(actors::demo_queue(now, 1'700'000'090'500));
  CHECK(queue["items"][0]["enqueued_at"] == "2023-11-14T22:13:20Z");
  CHECK(queue["items"][0]["wait_elapsed_s"] == 90.5);
  CHECK(queue["running_tasks"][0] == nlohmann::json{{"worker_id", "7"},
                                                    {"request_type", "audio_duplex"},
                                                    {"started_at", "2023-11-14T22:14:20Z"},
                                                    {"elapsed_s", 30.0},
                                                    {"estimated_remaining_s", 60.0}});
}

TEST_CASE("a status without anything is JSON too") {
  const auto status = nlohmann::json::parse(actors::status_report({}));
  CHECK(status["workers"].empty());
  CHECK(status["queue"]["length"] == 0);
  CHECK(status["sessions"]["chat"].empty());
}
