#pragma once

#include "actors/cluster/peer_messages.hpp"
#include "actors/messages.hpp"
#include "base/printable.hpp"

#include <cstdint>
#include <string>

// The messages with which a worker node joins a gateway.
namespace parley::actors {

struct node_hello;   // sent to the gateway's registry
struct node_verdict; // sent back to the node's `gateway_registration`

using node_registry_actor = caf::typed_actor<caf::reacts_to<node_hello>, caf::reacts_to<peer_hello>>;
using gateway_registration_actor = caf::typed_actor<caf::reacts_to<node_verdict>>;

/// A request to be admitted. The answer goes to `member`.
struct node_hello {
  worker_actor worker;
  gateway_registration_actor member;
  std::string name; ///< name of the node, for humans
  inference::engine_info info;
};

/// Whether a node may join.
enum class node_answer : std::uint8_t {
  welcome,
  not_yet, ///< its previous link does not yet count as gone: try again
  refused  ///< for a reason that will not go away by itself
};

/// The registry's answer to `node_hello`.
struct node_verdict {
  node_answer answer = node_answer::refused;
  worker_key key = 0; ///< for `welcome`: the key of the worker at this gateway
  std::string reason; ///< for the other answers
};

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_hello& of) {
  std::string bytes;
  if constexpr (Inspector::reads_state) bytes = pack(of.info);
  const auto load = [&]() -> caf::error {
    of.name = base::printable(of.name);
    if (unpack(bytes, of.info)) return all_there(of.worker, of.member);
    return caf::sec::invalid_argument;
  };
  return f(caf::meta::type_name("parley::node_hello"), of.worker, of.member, of.name, bytes,
           caf::meta::load_callback(load));
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_verdict& of) {
  auto answer = static_cast<std::uint8_t>(of.answer);
  const auto load = [&]() -> caf::error {
    of.reason = base::printable(of.reason, 1024);
    if (answer > static_cast<std::uint8_t>(node_answer::refused)) return caf::sec::invalid_argument;
    of.answer = static_cast<node_answer>(answer);
    return caf::none;
  };
  return f(caf::meta::type_name("parley::node_verdict"), answer, of.key, of.reason, caf::meta::load_callback(load));
}

} // namespace parley::actors
