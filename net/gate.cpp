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
  if (!has.key_asked) {
    has.may_watch = true;
    if (from.from_loopback) has.who = actors::requester{{}, true};
    return has;
  }
  const auto offered = offered_key(from.authorization, from.subprotocols, from.query);
  if (const auto owner = offered ? keys_.find(*offered) : std::nullopt)
    has.who = actors::requester{owner->name, owner->admin};
  has.may_watch = has.who || from.from_loopback;
  return has;
}

bool gate::may_come_from(const visitor& from) const {
  return origin_allowed(allowed_origins_, from.origin, from.host);
}

} // namespace parley::net
