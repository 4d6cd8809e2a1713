#include "net/routes/demo_routes.hpp"

#include "net/routes/guarded.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace parley::net {

namespace {

struct gone_endpoint {
  std::string_view method;
  std::string_view pattern;
  std::string_view instead;
};

constexpr std::string_view recordings =
    "recordings are at GET /sessions and GET /sessions/{id}/meta.json, events.jsonl, input.wav, output.wav and "
    "frames/NAME; /replay.html plays them";
constexpr std::string_view voices = "sessions bring their voice in session.init; the default one is at "
                                    "GET /api/default_ref_audio, and the setting voice.default names it";
constexpr std::string_view places =
    "a client hears its place over its own connection, and leaves the line by closing it; GET /api/queue has them all";
constexpr std::string_view lengths =
    "the settings queue.base_chat_seconds, queue.base_audio_seconds and queue.base_video_seconds have these";
constexpr std::string_view modes = "chat, audio and video are always there: /v1/realtime?mode=";

constexpr std::array<gone_endpoint, 24> gone{{
    {"GET", "/ws/chat", "chat is the WebSocket /v1/realtime?mode=chat, or POST /v1/chat/completions"},
    {"GET", "/ws/half_duplex/{}",
     "there is no half duplex: /v1/realtime?mode=audio decides by itself when to speak, mode=chat takes recordings"},
    {"GET", "/ws/duplex/{}", "full duplex is the WebSocket /v1/realtime?mode=audio or mode=video"},
    {"POST", "/api/chat", "chat is POST /v1/chat/completions, or the WebSocket /v1/realtime?mode=chat"},
    {"POST", "/api/streaming/stop", "an answer is stopped over its own connection, by session.close or by closing it"},
    {"GET", "/api/queue/{}", places},
    {"DELETE", "/api/queue/{}", places},
    {"GET", "/api/sessions/{}", recordings},
    {"GET", "/api/sessions/{}/recording", recordings},
    {"GET", "/api/sessions/{}/assets/{}", recordings},
    {"GET", "/api/sessions/{}/assets/{}/{}", recordings},
    {"GET", "/api/sessions/{}/download", recordings},
    {"GET", "/api/sessions/{}/comment", recordings},
    {"POST", "/api/sessions/{}/comment", "nothing can be written beside a recording"},
    {"POST", "/api/sessions/{}/upload-recording", "the server records by itself: the setting record.dir"},
    {"GET", "/s/{}", recordings},
    {"GET", "/api/assets/ref_audio", voices},
    {"POST", "/api/assets/ref_audio", voices},
    {"DELETE", "/api/assets/ref_audio/{}", voices},
    {"GET", "/api/config/eta", lengths},
    {"PUT", "/api/config/eta", lengths},
    {"GET", "/api/apps", modes},
    {"GET", "/api/admin/apps", modes},
    {"PUT", "/api/admin/apps/{}", modes},
}};

/// Serves one part of the server core's status unchanged.
router::handler part_of(actors::gateway_api& core, actors::status_part part) {
  return watched([&core, part](auto&, auto&, auto respond) {
    core.status([respond = std::move(respond)](std::string json) { respond({200, std::move(json)}); }, part);
  });
}

} // namespace

void add_demo_routes(router& table, actors::gateway_api& core) {
  table.add("GET", "/workers", part_of(core, actors::status_part::workers));
  table.add("GET", "/api/queue", part_of(core, actors::status_part::queue));
  for (const gone_endpoint& each : gone)
    table.add(each.method, each.pattern,
              [&each](auto&, auto&, auto respond) { respond(error_reply(410, "gone", each.instead)); });
}

} // namespace parley::net
