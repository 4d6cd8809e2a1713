#include "net/routes/usage_routes.hpp"

#include "net/routes/permission_reply.hpp"

#include <nlohmann/json.hpp>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace parley::net {
namespace {

/// Minutes to a thousandth, tokens whole.
nlohmann::json amount(double value, const quota_traits& of) {
  if (!of.in_minutes) return static_cast<std::int64_t>(value);
  return std::round(value * 1000) / 1000;
}

nlohmann::json number_or_null(std::int64_t limit) {
  return limit == 0 ? nlohmann::json() : nlohmann::json(limit);
}

nlohmann::json usage_object(const key_usage& usage, const key_usage::holder& of) {
  auto quotas = nlohmann::json::array();
  for (const auto& each : of.quotas) {
    const auto& about = traits(each.what);
    const bool limited = each.limit > 0;
    quotas.push_back({{"name", about.name},
                      {"limit", number_or_null(static_cast<std::int64_t>(each.limit))},
                      {"used", amount(each.used, about)},
                      {"left", limited ? amount(std::max(0.0, each.limit - each.used), about) : nlohmann::json()},
                      {"renews_at", utc_time(each.renews_at)}});
  }
  const auto limits = usage.limits_of(of.key);
  return {{"object", "usage"},
          {"key", of.key},
          {"quotas", std::move(quotas)},
          {"sessions", number_or_null(limits.sessions)},
          {"starts_per_minute", number_or_null(limits.starts_per_minute)}};
}

void tell_usage(const key_usage& usage, const http_request& request, const responder& respond) {
  if (!request.may.key_asked)
    return respond(error_reply(404, "not_found", "this server has no API keys, so it counts for none"));
  if (!request.may.who) return respond(permission_denied(request));
  auto body = usage_object(usage, usage.of(request.may.who->key));
  if (request.may.who->sees_all) {
    auto& keys = body["keys"] = nlohmann::json::array();
    for (const auto& each : usage.all()) keys.push_back(usage_object(usage, each));
  }
  respond({200, body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)});
}

} // namespace

void add_usage_routes(router& table, const key_usage& usage) {
  table.add("GET", "/v1/usage", [&usage](const http_request& request, auto&, const responder& respond) {
    tell_usage(usage, request, respond);
  });
}

std::string quota_metrics(const std::vector<key_usage::holder>& keys) {
  prometheus::Registry registry;
  auto& limits = prometheus::BuildGauge()
                     .Name("parley_key_quota")
                     .Help("What an API key may use in a day or a month, in minutes or tokens.")
                     .Register(registry);
  auto& used = prometheus::BuildGauge()
                   .Name("parley_key_quota_used")
                   .Help("How much of it the key has used, at this gateway.")
                   .Register(registry);
  for (const auto& key : keys) {
    for (const auto& each : key.quotas) {
      if (each.limit <= 0) continue;
      const prometheus::Labels labels{{"key", key.key}, {"quota", std::string(traits(each.what).name)}};
      limits.Add(labels).Set(each.limit);
      used.Add(labels).Set(each.used);
    }
  }
  return prometheus::TextSerializer().Serialize(registry.Collect());
}

} // namespace parley::net
