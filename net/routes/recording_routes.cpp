#include "net/routes/recording_routes.hpp"

#include "net/routes/permission_reply.hpp"

#include <array>
#include <memory>
#include <string>
#include <utility>

namespace parley::net {
namespace {

constexpr std::size_t most_listed = 1000;

struct file_type {
  std::string_view name;
  std::string_view type;
};
constexpr std::array<file_type, 4> files{{{"input.wav", "audio/wav"},
                                          {"output.wav", "audio/wav"},
                                          {"events.jsonl", "application/x-ndjson"},
                                          {"meta.json", "application/json"}}};

std::string_view type_of_picture(std::string_view name) {
  if (name.ends_with(".png")) return "image/png";
  return name.ends_with(".webp") ? "image/webp" : "image/jpeg";
}

http_reply answer(actors::recording_answer what) {
  using enum actors::recording_answer;
  switch (what) {
  case done: return {200, R"({"ok":true})"};
  case forbidden: return error_reply(403, "forbidden", "this is the session of another API key");
  case in_use: return error_reply(409, "in_use", "this session is still being recorded");
  case failed: return error_reply(500, "disk_error", "the disk failed; the server's log says why");
  case unknown: break;
  }
  return error_reply(404, "not_found", "there is no such recording");
}

void list(actors::gateway_api& core, const http_request& request, responder respond) {
  if (!request.may.who) return respond(permission_denied(request));
  if (!request.has_room) return respond(no_room_reply());
  std::string live = core.sessions(*request.may.who);
  auto* recordings = core.recordings();
  if (!recordings) return respond({200, R"({"sessions":)" + live + "}"});
  recordings->list(*request.may.who, most_listed,
                   [live = std::move(live), respond = std::move(respond)](const std::string& recorded) mutable {
                     live.pop_back();
                     if (live.size() > 1 && recorded.size() > 2) live += ',';
                     respond({200, R"({"sessions":)" + live + recorded.substr(1) + "}"});
                   });
}

void fetch(actors::gateway_api& core, const http_request& request, std::string id, std::string file,
           std::string_view type, responder respond) {
  if (!request.may.who) return respond(permission_denied(request));
  if (!request.has_room) return respond(no_room_reply());
  auto* recordings = core.recordings();
  if (!recordings) return respond(answer(actors::recording_answer::unknown));
  recordings->fetch(
      std::move(id), std::move(file), *request.may.who,
      [type, respond = std::move(respond)](actors::recording_answer what, std::shared_ptr<const base::open_file> file) {
        if (what != actors::recording_answer::done) return respond(answer(what));
        respond({200, std::move(file), type});
      });
}

} // namespace

void add_recording_routes(router& table, actors::gateway_api& core) {
  table.add("GET", "/sessions",
            [&core](const http_request& request, auto&, auto respond) { list(core, request, std::move(respond)); });
  for (const auto& each : files)
    table.add("GET", "/sessions/{}/" + std::string(each.name),
              [&core, &each](const http_request& request, const path_segments& in, auto respond) {
                fetch(core, request, in[0], std::string(each.name), each.type, std::move(respond));
              });
  table.add("GET", "/sessions/{}/frames/{}",
            [&core](const http_request& request, const path_segments& in, auto respond) {
              fetch(core, request, in[0], "frames/" + in[1], type_of_picture(in[1]), std::move(respond));
            });
  table.add("DELETE", "/sessions/{}", [&core](const http_request& request, const path_segments& in, auto respond) {
    if (!request.may.who) return respond(permission_denied(request));
    auto* recordings = core.recordings();
    if (!recordings) return respond(answer(actors::recording_answer::unknown));
    recordings->remove(in[0], *request.may.who,
                       [respond = std::move(respond)](actors::recording_answer what) { respond(answer(what)); });
  });
}

} // namespace parley::net
