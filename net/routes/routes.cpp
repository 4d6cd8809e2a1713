#include "net/routes/routes.hpp"

#include "net/routes/call_routes.hpp"
#include "net/routes/demo_routes.hpp"
#include "net/routes/guarded.hpp"
#include "net/routes/page.hpp"
#include "net/routes/recording_routes.hpp"
#include "net/routes/refusals.hpp"
#include "net/routes/secret_routes.hpp"
#include "net/routes/usage_routes.hpp"
#include "protocol/json/writer.hpp"

#include <nlohmann/json.hpp>

#include <charconv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace parley::net {
namespace {

std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string model_of(const route_sources& from) {
  return from.model.empty() ? from.core.model() : from.model;
}

/// With what a page has to know before it opens the microphone.
http_reply ready_reply(const route_sources& from, const permissions& may) {
  const auto state = from.core.ready();
  nlohmann::json body{{"recording", from.core.recordings() != nullptr},
                      {"key_required", may.key_asked},
                      {"name_allowed", may.page_may_open},
                      {"model", model_of(from)}};
  if (state.ready) {
    body["status"] = "ready";
    return {200, dump(body)};
  }
  body["error"] = {{"code", "service_unavailable"}, {"message", state.reason}};
  return {503, dump(body)};
}

/// The core's JSON object, with what only net/ knows in front.
std::string status_body(std::string_view core_json, double uptime_s, std::size_t connections) {
  std::string body = R"({"version":")" PARLEY_VERSION R"(","uptime_s":)" + std::to_string(uptime_s) +
                     R"(,"connections":)" + std::to_string(connections);
  const auto members = core_json.find_first_not_of(" \n", core_json.find('{') + 1);
  if (members == std::string_view::npos || core_json[members] == '}') return body + "}";
  return body + "," + std::string(core_json.substr(members));
}

http_reply health_reply(bool loading, const std::string& fault) {
  if (!fault.empty()) return {503, dump({{"status", "failed"}, {"reason", fault}, {"version", PARLEY_VERSION}})};
  return {loading ? 503U : 200U, dump({{"status", loading ? "loading" : "healthy"}, {"version", PARLEY_VERSION}})};
}

std::string encode_voice(const named_voice& voice) {
  constexpr int sample_rate = 16'000;
  std::string body;
  protocol::json::object_writer out(body);
  out.text("name", voice.name);
  out.number("duration", static_cast<double>(voice.samples->size()) / sample_rate, 3);
  out.integer("sample_rate", sample_rate);
  out.integer("samples", static_cast<std::int64_t>(voice.samples->size()));
  out.samples("base64", *voice.samples);
  out.close();
  return body;
}

/// The answer with the default voice, a megabyte that all its readers share. Thread-safe.
class voice_answer {
public:
  explicit voice_answer(default_voice source) : source_(std::move(source)) {}

  http_reply reply() {
    const named_voice voice = source_ ? source_() : named_voice{};
    if (!voice.samples) return error_reply(404, "not_found", "this server has no default voice");
    const std::lock_guard lock(mutex_);
    if (voice.samples != encoded_from_) {
      encoded_ = std::make_shared<const std::string>(encode_voice(voice));
      encoded_from_ = voice.samples;
    }
    return {200, encoded_};
  }

private:
  const default_voice source_;
  std::mutex mutex_;
  std::shared_ptr<const std::vector<float>> encoded_from_;
  std::shared_ptr<const std::string> encoded_;
};

nlohmann::json model_object(const route_sources& from, const std::string& id) {
  return {{"id", id}, {"object", "model"}, {"created", from.created_s}, {"owned_by", "parley"}};
}

/// GET /v1/models. A gateway that no worker has joined yet has none.
http_reply models_reply(const route_sources& from) {
  auto models = nlohmann::json::array();
  if (const auto id = model_of(from); !id.empty()) models.push_back(model_object(from, id));
  return {200, dump({{"object", "list"}, {"data", std::move(models)}})};
}

/// GET /v1/models/{id}, as OpenAI's packages expect it.
http_reply model_reply(const route_sources& from, const std::string& id) {
  if (!id.empty() && id == model_of(from)) return {200, dump(model_object(from, id))};
  return completion_error(
      {404, "model_not_found", "there is no model \"" + id + "\" here; GET /v1/models names the one"});
}

void drain_worker(actors::gateway_api& core, const std::string& segment, bool drain, responder respond) {
  std::uint64_t id = 0;
  const char* end = segment.data() + segment.size();
  if (std::from_chars(segment.data(), end, id).ptr != end)
    return respond(error_reply(404, "not_found", "there is no such worker"));
  core.drain_worker(id, drain, [id, drain, respond = std::move(respond)](bool known) {
    if (!known) return respond(error_reply(404, "not_found", "there is no such worker"));
    respond({200, dump({{"ok", true}, {"worker", id}, {"draining", drain}})});
  });
}

void close_session(actors::gateway_api& core, const http_request& request, const std::string& id, responder respond) {
  if (!request.may.who) return respond(permission_denied(request));
  std::string reason;
  if (request.body.find_first_not_of(" \t\r\n") != std::string::npos) {
    const auto body = nlohmann::json::parse(request.body, nullptr, false);
    if (!body.is_object()) return respond(error_reply(400, "invalid_payload", "the body is not a JSON object"));
    if (const auto given = body.find("reason"); given != body.end() && !given->is_null()) {
      if (!given->is_string()) return respond(error_reply(400, "invalid_payload", "reason is not a string"));
      reason = given->get<std::string>();
    }
  }
  core.close_session(id, std::move(reason), *request.may.who,
                     [id, respond = std::move(respond)](actors::close_answer answer) {
                       using enum actors::close_answer;
                       if (answer == unknown)
                         return respond(error_reply(404, "not_found", "there was never such a session"));
                       if (answer == forbidden)
                         return respond(error_reply(403, "forbidden", "this is the session of another API key"));
                       respond({200, dump({{"ok", true}, {"session_id", id}, {"closed", true}})});
                     });
}

} // namespace

router make_routes(route_sources sources) {
  const auto from = std::make_shared<const route_sources>(std::move(sources));
  const auto started = std::chrono::steady_clock::now();
  router table;
  add_page(table);
  table.add("GET", "/health",
            [from](auto&, auto&, auto respond) { respond(health_reply(from->core.loading(), from->core.fault())); });
  table.add("GET", "/ready",
            [from](const http_request& request, auto&, auto respond) { respond(ready_reply(*from, request.may)); });
  table.add("GET", "/status", watched([from, started](auto&, auto&, auto respond) {
              from->core.status([from, started, respond = std::move(respond)](const std::string& core_json) {
                const std::chrono::duration<double> uptime = std::chrono::steady_clock::now() - started;
                respond({200, status_body(core_json, uptime.count(), from->connections())});
              });
            }));
  table.add("GET", "/metrics", watched([from](auto&, auto&, auto respond) {
              from->core.metrics([from, respond = std::move(respond)](std::string core_json) {
                const auto quotas = from->usage ? quota_metrics(from->usage->all()) : std::string();
                respond({200, std::move(core_json) + from->counted.text(from->connections()) + quotas,
                         "text/plain; version=0.0.4; charset=utf-8"});
              });
            }));
  add_recording_routes(table, from->core);
  add_demo_routes(table, from->core);
  table.add("POST", "/workers/{}/drain", administered([from](auto&, const path_segments& in, auto respond) {
              drain_worker(from->core, in[0], true, std::move(respond));
            }));
  table.add("POST", "/workers/{}/resume", administered([from](auto&, const path_segments& in, auto respond) {
              drain_worker(from->core, in[0], false, std::move(respond));
            }));
  table.add(
      "GET", "/api/default_ref_audio",
      [voice = std::make_shared<voice_answer>(from->voice)](auto&, auto&, auto respond) { respond(voice->reply()); });
  table.add("GET", "/v1/models", [from](auto&, auto&, auto respond) { respond(models_reply(*from)); });
  table.add("GET", "/v1/models/{}",
            [from](auto&, const path_segments& in, auto respond) { respond(model_reply(*from, in[0])); });
  table.add("GET", "/v1/models/{}/{}", [from](auto&, const path_segments& in, auto respond) {
    respond(model_reply(*from, in[0] + "/" + in[1])); // for ids of the form OWNER/MODEL
  });
  table.add("POST", "/sessions/{}/move", administered([from](auto&, const path_segments& in, auto respond) {
              from->core.move_session(in[0], [id = in[0], respond = std::move(respond)](bool known) {
                if (!known) return respond(error_reply(404, "not_found", "there is no such live session"));
                respond({200, dump({{"ok", true}, {"session_id", id}, {"moving", true}})});
              });
            }));
  table.add("POST", "/sessions/{}/close",
            [from](const http_request& request, const path_segments& in, responder respond) {
              close_session(from->core, request, in[0], std::move(respond));
            });
  if (from->usage != nullptr) add_usage_routes(table, *from->usage);
  if (from->secrets != nullptr) {
    add_secret_routes(table, *from->secrets, from->transcribes);
    add_call_routes(table, from->calls);
  }
  // Connections handle these themselves (http_session); the routes here answer other methods.
  table.add("POST", "/v1/chat/completions",
            [](auto&, auto&, auto respond) { respond(error_reply(400, "bad_request", "not a completion")); });
  for (const auto* path : {"/v1/realtime", "/v1/live", "/v1/live/sessions"}) {
    table.add("GET", path, [](auto&, auto&, auto respond) {
      respond(error_reply(426, "upgrade_required", "this path speaks WebSocket"));
    });
  }
  return table;
}

} // namespace parley::net
