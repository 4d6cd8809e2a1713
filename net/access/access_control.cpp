#include "net/access/access_control.hpp"

#include "net/access/origin.hpp"

namespace parley::net {

namespace {

std::optional<std::string> key_of(const credentials& from) {
  if (auto offered = offered_key(from.authorization, from.subprotocols, from.query)) return offered;
  if (from.api_key.empty()) return std::nullopt;
  return std::string(from.api_key);
}

} // namespace

std::optional<access_control::entry> access_control::owner_of(const credentials& from, bool realtime) const {
  const auto offered = key_of(from);
  const auto listed = keys();
  entry out;
  if (realtime && offered && ephemeral_keys::is_one(*offered)) {
    auto granted = ephemeral_.read(*offered);
    if (!granted || (listed->asked() && !listed->has_owner(granted->owner))) return std::nullopt;
    out.key = std::move(granted->owner);
    out.session = std::move(granted->session);
  } else if (listed->asked()) {
    const auto owner = offered ? listed->find(*offered) : std::nullopt;
    if (!owner) return std::nullopt;
    out.key = owner->name;
  }
  return out;
}

access_control::entry access_control::let_in(const credentials& from, admission::time_point now, visit why) {
  auto owner = owner_of(from, why.realtime);
  if (!owner) return {refusal::key, {}, {}};
  if (!may_come_from(from)) return {refusal::origin, {}, {}};
  if (const auto spent = why.returning ? std::nullopt : usage_->spent(owner->key))
    return {refusal::quota, owner->key, {}, {}, spent};
  auto [verdict, reservation] =
      admission_.enter(from.address, owner->key, now, why.returning, own_limits_of(owner->key));
  switch (verdict) {
  case admission::verdict::too_many_sessions: return {refusal::sessions, {}, {}};
  case admission::verdict::too_many_starts: return {refusal::rate, {}, {}};
  case admission::verdict::welcome: break;
  }
  return {std::nullopt, std::move(owner->key), std::move(reservation), std::move(owner->session)};
}

own_limits access_control::own_limits_of(const std::string& key) const {
  const auto limits = usage_->limits_of(key);
  return {static_cast<std::size_t>(limits.sessions), static_cast<std::size_t>(limits.starts_per_minute)};
}

permissions access_control::permissions_of(const credentials& from) const {
  permissions has;
  const auto listed = keys();
  has.key_asked = listed->asked();
  if (has.key_asked) {
    const auto offered = key_of(from);
    if (const auto owner = offered ? listed->find(*offered) : std::nullopt)
      has.who = actors::principal{owner->name, owner->admin};
  } else if (is_local(from)) {
    has.who = actors::principal{{}, true};
  }
  has.may_watch = has.who || is_local(from);
  has.page_may_open = page_may_open(from.host);
  return has;
}

bool access_control::may_come_from(const credentials& from) const {
  return origin_allowed(allowed_origins_, from.origin, from.host, asks_for_keys() ? nullptr : &names_);
}

/// A loopback connection alone proves little, because proxies and browsers make them on behalf of others. So the
/// request must also address this machine by a name that always leads to it, and must not come from another host's
/// page.
bool access_control::is_local(const credentials& from) const {
  if (!from.from_loopback || from.forwarded) return false;
  const auto asked = read_authority(from.host);
  if (!asked || !names_.is_local(asked->host)) return false;
  return from.origin.empty() || is_own_page(from.origin, from.host, &names_);
}

/// Browsers name no origin when a page asks its own server, so both schemes that it may have come by are tried: behind a
/// proxy with TLS ours is not the one that the user sees.
bool access_control::page_may_open(std::string_view host) const {
  const server_names* names = asks_for_keys() ? nullptr : &names_;
  const std::string name(host);
  return !name.empty() && (origin_allowed(allowed_origins_, "http://" + name, host, names) ||
                           origin_allowed(allowed_origins_, "https://" + name, host, names));
}

} // namespace parley::net
