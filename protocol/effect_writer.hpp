#pragma once

#include "protocol/session_effects.hpp"

#include <string_view>
#include <utility>

namespace parley::protocol {

/// Gathers the effects of one call. Lives no longer than that call.
struct effect_writer {
  effects& out;
  dialect spoken = dialect::undecided;
  std::string_view session_id; ///< empty before `session.created`

  void say(server_event event) { out.emplace_back(send{std::move(event), spoken, session_id}); }

  template<class Order>
  void order(Order what) {
    out.emplace_back(std::move(what));
  }
};

} // namespace parley::protocol
