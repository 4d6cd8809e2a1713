#pragma once

#include <caf/all.hpp>

namespace parley::actors {

/// Whether who sent a message may speak about an actor of that node: each node speaks for its own. A message without a
/// sender is one of this process, because none comes from another (link_guard).
inline bool speaks_for(const caf::strong_actor_ptr& sender, const caf::node_id& node) {
  return !sender || sender->node() == node;
}

/// Whether a message is from that actor itself, or of this process and without a sender.
template<class Actor>
bool comes_from(const caf::strong_actor_ptr& sender, const Actor& who) {
  return !sender || who.address() == sender->address();
}

} // namespace parley::actors
