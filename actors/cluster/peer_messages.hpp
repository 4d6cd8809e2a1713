#pragma once

#include "actors/log/log_piece.hpp"
#include "actors/messages.hpp"
#include "base/printable.hpp"
#include "protocol/ids.hpp"

#include <cstdint>
#include <string>

// The messages between two gateways, of which one keeps the logs of the other's sessions.
namespace parley::actors {

struct peer_welcome;
struct peer_refused;

/// The gateway that has the sessions, and what the other one has for it.
using peer_link_actor = caf::typed_actor<caf::reacts_to<peer_welcome>, caf::reacts_to<peer_refused>,
                                         caf::reacts_to<piece_taken>, caf::reacts_to<log_refused>>;
using copy_receiver_actor = caf::typed_actor<caf::reacts_to<log_piece>>;

/// Asks a gateway's registry to keep copies. The answer goes to `sender`.
struct peer_hello {
  peer_link_actor sender;
  std::uint64_t node = 0; ///< `log_owner::node`
  std::string name;
};

/// Logs may be sent to `receiver`.
struct peer_welcome {
  copy_receiver_actor receiver;
};

struct peer_refused {
  std::string reason;
};

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, peer_hello& of) {
  const auto load = [&] {
    of.name = base::printable(of.name);
    return all_there(of.sender);
  };
  return f(caf::meta::type_name("parley::peer_hello"), of.sender, of.node, of.name, caf::meta::load_callback(load));
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, peer_welcome& of) {
  return inspect_there(f, "parley::peer_welcome", of.receiver);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, peer_refused& of) {
  const auto load = [&]() -> caf::error {
    of.reason = base::printable(of.reason);
    return caf::none;
  };
  return f(caf::meta::type_name("parley::peer_refused"), of.reason, caf::meta::load_callback(load));
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, log_piece& of) {
  const auto load = [&]() -> caf::error {
    if (plausible(of)) return caf::none;
    return caf::sec::invalid_argument;
  };
  return f(caf::meta::type_name("parley::log_piece"), of.session.id, of.session.birth, of.epoch, of.offset, of.bytes,
           of.over, caf::meta::load_callback(load));
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, piece_taken& of) {
  return f(caf::meta::type_name("parley::piece_taken"), of.bytes);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, log_refused& of) {
  const auto load = [&]() -> caf::error {
    if (protocol::is_session_id(of.session.id)) return caf::none;
    return caf::sec::invalid_argument;
  };
  return f(caf::meta::type_name("parley::log_refused"), of.session.id, of.session.birth, of.newer.epoch, of.newer.node,
           caf::meta::load_callback(load));
}

} // namespace parley::actors
