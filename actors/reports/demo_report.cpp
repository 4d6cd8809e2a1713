#include "actors/reports/demo_report.hpp"

#include "base/assert.hpp"
#include "protocol/json/writer.hpp"

#include <array>
#include <charconv>
#include <ctime>
#include <optional>
#include <string_view>

namespace parley::actors {

namespace {

using protocol::json::object_writer;

constexpr int second_decimals = 1;

std::string_view status_of(const worker_view& worker, bool has_room) {
  switch (worker.state) {
  case worker_state::loading: return "loading";
  case worker_state::up: return has_room ? "idle" : "busy";
  case worker_state::draining: return "draining";
  case worker_state::down: return "offline";
  }
  return "";
}

std::string_view request_type(protocol::mode kind) {
  switch (kind) {
  case protocol::mode::chat: return "chat";
  case protocol::mode::audio: return "audio_duplex";
  case protocol::mode::video: return "omni_duplex";
  }
  return "";
}

/// The N of `cuda:N`; none for other devices.
std::optional<int> gpu_of(std::string_view device) {
  constexpr std::string_view prefix = "cuda:";
  if (!device.starts_with(prefix)) return {};
  device.remove_prefix(prefix.size());
  int number = 0;
  const auto end = std::from_chars(device.data(), device.data() + device.size(), number);
  if (end.ec != std::errc{} || end.ptr != device.data() + device.size()) return {};
  return number;
}

/// `2026-01-31T12:34:56Z`
std::string time_of_day(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%FT%TZ", &parts)};
}

std::int64_t before(std::int64_t now_unix_ms, double seconds) {
  return now_unix_ms - static_cast<std::int64_t>(seconds * 1000);
}

} // namespace

std::string demo_workers(const server_snapshot& now) {
  const auto& workers = now.workers;
  std::string out = R"({"total":)" + std::to_string(workers.size()) + R"(,"workers":[)";
  for (const worker_view& worker : workers) {
    if (&worker != &workers.front()) out += ',';
    object_writer item(out);
    item.text("worker_id", std::to_string(worker.key));
    item.text("host", worker.node.empty() ? "local" : worker.node);
    item.text("device", worker.device);
    if (const auto gpu = gpu_of(worker.device)) item.integer("gpu_id", *gpu);
    item.text("status", status_of(worker, has_room(now, worker.key)));
    if (const auto* of = slots_of(now, worker.key)) {
      item.integer("slots", of->slots);
      item.integer("busy", of->busy);
    }
    item.close();
  }
  return out + "]}";
}

std::string demo_queue(const server_snapshot& now, std::int64_t now_unix_ms) {
  const auto& waiters = now.waiters;
  const auto& waited_s = now.waits_s;
  const auto& conversations = now.conversations;
  PARLEY_ASSERT(waiters.size() == waited_s.size(), "each waiter has waited for some time");
  std::string out = R"({"queue_length":)" + std::to_string(waiters.size()) + R"(,"max_queue_size":)" +
                    std::to_string(now.queue_capacity) + R"(,"items":[)";
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    if (i > 0) out += ',';
    object_writer item(out);
    item.text("ticket_id", waiters[i].ticket_id);
    item.text("request_type", request_type(waiters[i].kind));
    item.integer("position", static_cast<std::int64_t>(i) + 1);
    item.number("estimated_wait_s", waiters[i].estimated_wait_s, second_decimals);
    item.text("enqueued_at", time_of_day(before(now_unix_ms, waited_s[i])));
    item.number("wait_elapsed_s", waited_s[i], second_decimals);
    item.close();
  }
  out += R"(],"running_tasks":[)";
  for (std::size_t i = 0; i < conversations.size(); ++i) {
    const auto& each = conversations[i];
    if (i > 0) out += ',';
    object_writer item(out);
    item.text("worker_id", std::to_string(each.worker));
    item.text("request_type", request_type(each.kind));
    item.text("started_at", time_of_day(before(now_unix_ms, each.elapsed_s)));
    item.number("elapsed_s", each.elapsed_s, second_decimals);
    item.number("estimated_remaining_s", each.expected_s, second_decimals);
    item.close();
  }
  return out + "]}";
}

} // namespace parley::actors
