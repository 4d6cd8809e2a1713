#pragma once

#include "tests/protocol/session_driver.hpp"
#include "tests/protocol/wire_material.hpp"

#include <functional>
#include <string>
#include <utility>
#include <variant>

// What a session refuses of its client, in the words in which it says so.
namespace parley::protocol::test {

/// What the client is told of errors.
inline std::string refusals(const effects& made) {
  std::string out;
  for (const auto& each : made)
    if (const auto* sent = std::get_if<send>(&each))
      if (const auto* error = std::get_if<error_event>(&sent->event))
        out += std::string(traits(error->code).wire) + " " + error->message + "\n";
  return out;
}

enum class stage { connected, active };

inline std::string told(const char* mode, stage at, const std::function<void(driver&)>& say) {
  driver d(driver::options{mode});
  at == stage::connected ? d.to_connected() : d.to_active();
  say(d);
  return refusals(d.last);
}

inline std::string typed(const char* mode, stage at, result<client_event> event) {
  return told(mode, at, [&](driver& d) { d.note(d.machine.on_event(std::move(event), d.now)); });
}

inline std::string wire(const char* mode, stage at, const dom& frame) {
  return told(mode, at, [&](driver& d) { d.frame(frame.dump()); });
}

} // namespace parley::protocol::test
