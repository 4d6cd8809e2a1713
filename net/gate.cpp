#include "net/gate.hpp"

#include "net/credentials.hpp"

namespace parley::net {

gate::entry gate::let_in(const visitor& from, admission::time_point now, bool returning) {
  std::string key;
  if (keys_.asked()) {
    const auto offered = offered_key(from.authorization, from.subprotocols, from.query);
    const auto owner = offered ? keys_.find(*offered) : std::nullopt;
    if (!owner) return {refusal::key, {}, {}};
    key = owner->name;
  }
  if (!may_come_from(from)) return {refusal::origin, {}, {}};
  auto [verdict, pass] = admission_.enter(from.address, key, now, returning);
  switch (verdict) {
  case admission::verdict::too_many_sessions: return {refusal::sessions, {}, {}};
  case admission::verdict::too_many_starts: return {refusal::rate, {}, {}};
  case admission::verdict::welcome: break;
  }
  return {std::nullopt, std::move(key), std::move(pass)};
}

rights gate::rights_of(const visitor& from) const {
  rights has;
  has.key_asked = keys_.asked();
  if (has.key_asked) {
    const auto offered = offered_key(from.authorization, from.subprotocols, from.query);
    if (const auto owner = offered ? keys_.find(*offered) : std::nullopt)
      has.who = actors::requester{owner->name, owner->admin};
  } else if (is_local(from)) {
    has.who = actors::requester{{}, true};
  }
  has.may_watch = has.who || is_local(from);
  return has;
}

bool gate::may_come_from(const visitor& from) const {
  return origin_allowed(allowed_origins_, from.origin, from.host, keys_.asked() ? nullptr : &names_);
}

/// A loopback connection alone proves little: proxies and browsers make them for others. So it has to ask for this
/// machine by a name that leads to it everywhere, and not for a page of somebody else.
bool gate::is_local(const visitor& from) const {
  if (!from.from_loopback || from.forwarded) return false;
  const auto asked = read_authority(from.host);
  if (!asked || !names_.is_local(asked->host)) return false;
  return from.origin.empty() || is_own_page(from.origin, from.host, &names_);
}

} // namespace parley::net
