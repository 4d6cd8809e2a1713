#include "net/routes/router.hpp"

#include "net/target.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace parley::net {
namespace {

std::string_view cut_segment(std::string_view& path) {
  const auto slash = std::min(path.find('/', 1), path.size());
  const auto segment = path.substr(0, slash);
  path.remove_prefix(slash);
  return segment;
}

/// The segments that match each `{}`; nothing if the path does not match. Both arguments begin with a slash.
std::optional<path_segments> match(std::string_view pattern, std::string_view path) {
  path_segments found;
  while (!pattern.empty() && !path.empty()) {
    const auto wanted = cut_segment(pattern);
    const auto given = cut_segment(path);
    if (wanted == "/{}" && given.size() > 1) {
      found.push_back(percent_decode(given.substr(1)));
    } else if (wanted != given) {
      return std::nullopt;
    }
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return found;
}

} // namespace

http_reply error_reply(unsigned status, std::string_view code, std::string_view message) {
  std::string body = R"({"error":{"code":")";
  body.append(code).append(R"(","message":")").append(message).append(R"("}})");
  return {status, std::move(body)};
}

http_reply no_room_reply() {
  return error_reply(503, "too_many_answers", "too many answers wait for their readers");
}

void router::add(std::string_view method, std::string_view pattern, handler run) {
  entries_.push_back({std::string(method), std::string(pattern), std::move(run)});
}

std::vector<std::string> router::listed() const {
  std::vector<std::string> all;
  all.reserve(entries_.size());
  for (const entry& each : entries_) all.push_back(each.method + " " + each.pattern);
  return all;
}

std::string router::allowed(std::string_view path) const {
  std::string allow;
  const auto add = [&allow](std::string_view method) {
    if (allow.find(method) != std::string::npos) return; // no method's name is part of another's
    if (!allow.empty()) allow += ", ";
    allow += method;
  };
  for (const entry& candidate : entries_) {
    if (path != "*" && !match(candidate.pattern, path)) continue;
    add(candidate.method);
    if (candidate.method == "GET") add("HEAD");
  }
  if (!allow.empty()) add("OPTIONS");
  return allow;
}

void router::route(const http_request& request, responder respond) const {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  for (const entry& candidate : entries_) {
    if (candidate.method != method) continue;
    if (const auto segments = match(candidate.pattern, request.path))
      return candidate.run(request, *segments, std::move(respond));
  }
  auto allow = method == "OPTIONS" || request.path != "*" ? allowed(request.path) : std::string();
  if (allow.empty()) return respond(error_reply(404, "not_found", "there is nothing at this path"));
  http_reply reply = method == "OPTIONS"
                         ? http_reply{204}
                         : error_reply(405, "method_not_allowed", "this path has other methods, see Allow");
  reply.allow = std::move(allow);
  respond(std::move(reply));
}

} // namespace parley::net
