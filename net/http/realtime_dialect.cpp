#include "net/http/realtime_dialect.hpp"

#include "net/subprotocol.hpp"
#include "net/target.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace parley::net {
namespace {

constexpr std::string_view own_path = "/v1/realtime";
constexpr std::string_view azure_path = "/openai/v1/realtime";
constexpr std::string_view azure_preview_path = "/openai/realtime";
constexpr std::string_view beta_subprotocol = "openai-beta.realtime-v1";
constexpr std::array<std::string_view, 4> live_paths{"/v1/live/sessions", "/v1/live", "/openai/v1/live/sessions",
                                                     "/openai/v1/live"};

bool is_live(std::string_view path) {
  return std::find(live_paths.begin(), live_paths.end(), path) != live_paths.end();
}

bool any_of(std::string_view query, std::initializer_list<std::string_view> keys) {
  return std::any_of(keys.begin(), keys.end(), [&](auto key) { return query_value(query, key).has_value(); });
}

bool is_openai(std::string_view path, std::string_view query, std::string_view subprotocols, std::string_view beta,
               config::openai_door door) {
  if (path == azure_path || path == azure_preview_path) return true;
  if (const auto named = query_value(query, "dialect");
      named == "openai" || named == "openai-beta" || named == "parley")
    return *named != "parley";
  if (any_of(query, {"mode", "resume_token"})) return false;
  if (door == config::openai_door::automatic &&
      any_of(query, {"model", "deployment", "api-version", "intent", "call_id"}))
    return true;
  const auto chosen = choose_subprotocol(subprotocols);
  return !beta.empty() || chosen == "realtime" || chosen == beta_subprotocol;
}

/// Of a connection that speaks the Realtime API.
bool is_beta(std::string_view path, std::string_view query, std::string_view subprotocols, std::string_view beta) {
  if (path == azure_path || path == azure_preview_path) return path == azure_preview_path;
  if (const auto named = query_value(query, "dialect"); named == "openai" || named == "openai-beta")
    return *named == "openai-beta";
  return query_value(query, "api-version") || beta.find("realtime=v1") != beta.npos ||
         subprotocols.find(beta_subprotocol) != subprotocols.npos;
}

} // namespace

bool is_realtime_path(std::string_view path) {
  return path == own_path || path == azure_path || path == azure_preview_path || is_live(path);
}

std::optional<actors::realtime_request> realtime_request_of(std::string_view path, std::string_view query,
                                                            std::string_view subprotocols, std::string_view beta,
                                                            config::openai_door door) {
  if (is_live(path)) return actors::realtime_request{"", true, actors::openai_dialect::live};
  if (!is_openai(path, query, subprotocols, beta, door)) return std::nullopt;
  actors::realtime_request out;
  out.model = query_value(query, "model").value_or(query_value(query, "deployment").value_or(""));
  if (out.model.empty()) out.model = "parley";
  if (is_beta(path, query, subprotocols, beta)) out.spoken = actors::openai_dialect::realtime_beta;
  out.served = !any_of(query, {"intent", "call_id"});
  return out;
}

bool is_undecided(std::string_view path, std::string_view query, config::openai_door door) {
  return door == config::openai_door::automatic && path == own_path &&
         !any_of(query, {"mode", "resume_token", "dialect"});
}

} // namespace parley::net
