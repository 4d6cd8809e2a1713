#include "actors/reports/status_report.hpp"

#include "protocol/json/writer.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace parley::actors {

namespace {

using protocol::json::object_writer;

/// Writes `"key":[` and one JSON object per item, then `]`.
template<class Items, class Write>
void list(std::string& out, std::string_view key, const Items& items, Write write) {
  protocol::json::append_string(key, out);
  out += ":[";
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += ',';
    first = false;
    write(item);
  }
  out += ']';
}

} // namespace

std::string status_report(const server_snapshot& now) {
  const auto& workers = now.workers;
  const auto& waits_s = now.waits_s;
  const auto& sessions = now.sessions;
  const auto up = [](const worker_view& worker) { return worker.state == worker_state::up; };
  const auto idle =
      std::ranges::count_if(workers, [&](const auto& each) { return up(each) && has_room(now, each.key); });
  const auto busy = std::ranges::count_if(workers, up) - idle;
  std::string out;
  object_writer counts(out); // the same counts in the terms of the official demo's pages
  counts.integer("total_workers", static_cast<std::int64_t>(workers.size()));
  counts.integer("idle_workers", idle);
  counts.integer("busy_workers", busy);
  counts.integer("duplex_workers", 0); // no worker is bound to one kind of session
  counts.integer("queue_length", static_cast<std::int64_t>(waits_s.size()));
  out += ',';
  list(out, "workers", workers, [&](const worker_view& worker) {
    object_writer item(out);
    item.integer("id", static_cast<std::int64_t>(worker.key));
    item.text("node", worker.node.empty() ? "local" : worker.node);
    item.text("device", worker.device);
    if (const auto* of = slots_of(now, worker.key)) {
      item.integer("slots", of->slots);
      item.integer("busy", of->busy);
    }
    item.text("state", name_of(worker.state));
    if (is_up(worker.state)) {
      item.text("model", worker.info.model);
      item.text("fingerprint", worker.info.fingerprint);
    }
    if (worker.state == worker_state::down) item.text("reason", worker.reason);
    item.close();
  });
  out += R"(,"queue":{"length":)" + std::to_string(waits_s.size()) + ',';
  list(out, "waits", waits_s, [&](double seconds) { out += std::to_string(static_cast<std::int64_t>(seconds)); });
  out += R"(},"sessions":)";
  object_writer by_mode(out);
  for (const auto kind : {protocol::mode::chat, protocol::mode::audio, protocol::mode::video}) {
    auto by_state = by_mode.object(name_of(kind));
    for (const auto& of : sessions)
      if (of.kind == kind) by_state.integer(name_of(of.state), of.sessions);
    by_state.close();
  }
  by_mode.close();
  return out + '}';
}

std::string sessions_report(const std::vector<session_registry::view>& sessions,
                            std::chrono::steady_clock::time_point now) {
  std::string out = "[";
  for (const auto& each : sessions) {
    if (out.size() > 1) out += ',';
    object_writer item(out);
    item.text("session_id", each.id);
    item.text("mode", name_of(each.kind));
    item.text("state", name_of(each.state));
    item.text("address", each.whose.address);
    if (!each.whose.key.empty()) item.text("key", each.whose.key);
    item.number("age_s", std::chrono::duration<double>(now - each.whose.since).count(), 1);
    item.close();
  }
  return out + ']';
}

} // namespace parley::actors
