#include "net/router.hpp"

#include "net/target.hpp"

#include <optional>
#include <utility>

namespace parley::net {
namespace {

/// What stands for `{}`; empty for a pattern without it. None when the path does not fit.
std::optional<std::string> match(std::string_view pattern, std::string_view path) {
  const auto hole = pattern.find("{}");
  if (hole == std::string_view::npos) {
    if (pattern != path) return std::nullopt;
    return std::string();
  }
  const std::string_view before = pattern.substr(0, hole);
  const std::string_view after = pattern.substr(hole + 2);
  if (path.size() <= before.size() + after.size() || !path.starts_with(before) || !path.ends_with(after))
    return std::nullopt;
  const std::string_view segment = path.substr(before.size(), path.size() - before.size() - after.size());
  if (segment.find('/') != std::string_view::npos) return std::nullopt;
  return percent_decode(segment);
}

} // namespace

http_reply error_reply(unsigned status, std::string_view code, std::string_view message) {
  std::string body = R"({"error":{"code":")";
  body.append(code).append(R"(","message":")").append(message).append(R"("}})");
  return {status, std::move(body)};
}

void router::add(std::string_view method, std::string_view pattern, handler run) {
  entries_.push_back({std::string(method), std::string(pattern), std::move(run)});
}

void router::route(const http_request& request, responder respond) const {
  const std::string_view method = request.method == "HEAD" ? "GET" : std::string_view(request.method);
  std::string allow;
  for (const entry& candidate : entries_) {
    const std::optional<std::string> segment = match(candidate.pattern, request.path);
    if (!segment) continue;
    if (candidate.method == method) return candidate.run(request, *segment, std::move(respond));
    if (!allow.empty()) allow += ", ";
    allow += candidate.method;
  }
  if (allow.empty()) return respond(error_reply(404, "not_found", "there is nothing at this path"));
  http_reply reply = error_reply(405, "method_not_allowed", "this path has other methods, see Allow");
  reply.allow = std::move(allow);
  respond(std::move(reply));
}

} // namespace parley::net
