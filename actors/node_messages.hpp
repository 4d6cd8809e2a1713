#pragma once

#include "actors/messages.hpp"

// What is said when a worker node joins a gateway.
namespace parley::actors {

struct node_hello;   // to the gateway's registry
struct node_verdict; // back to the node's member

using node_registry_actor = caf::typed_actor<caf::reacts_to<node_hello>>;
using node_member_actor = caf::typed_actor<caf::reacts_to<node_verdict>>;

/// Asks to be let in. Answered to `member`.
struct node_hello {
  worker_actor worker;
  node_member_actor member;
  std::string name; ///< of the node, for people
  inference::engine_info info;
};

/// Whether a node may join.
enum class node_answer : std::uint8_t {
  welcome,
  not_yet, ///< its last link is not known to be gone yet: to be tried again
  refused  ///< for a reason that will not go away by itself
};

/// The registry's answer to `node_hello`.
struct node_verdict {
  node_answer answer = node_answer::refused;
  worker_key key = 0; ///< of `welcome`: what the worker is called there
  std::string reason; ///< else
};

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_hello& of) {
  return inspect_packed(f, "parley::node_hello", of.info, of.worker, of.member, of.name);
}

template<class Inspector>
typename Inspector::result_type inspect(Inspector& f, node_verdict& of) {
  return f(caf::meta::type_name("parley::node_verdict"), of.answer, of.key, of.reason);
}

} // namespace parley::actors
