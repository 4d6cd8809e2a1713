#pragma once

#include "protocol/session/session_effects.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

namespace parley::protocol {

/// Collects the effects of one call. Must not outlive that call.
struct effect_writer {
  effects& out;
  dialect spoken = dialect::undecided;
  std::string_view session_id;            ///< empty before `session.created`
  std::uint64_t* last_event_id = nullptr; ///< null = events are not numbered

  /// Adds an event for the client, in the current dialect.
  void say(server_event event) {
    out.emplace_back(send{std::move(event), spoken, session_id, last_event_id ? ++*last_event_id : 0});
  }

  /// Adds any other effect.
  template<class Order>
  void order(Order what) {
    out.emplace_back(std::move(what));
  }
};

} // namespace parley::protocol
