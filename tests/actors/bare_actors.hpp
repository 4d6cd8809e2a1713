#pragma once

#include "actors/cluster/actor_threads.hpp"

#include <caf/all.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

// Actors without a server around them.
namespace parley::actors::test {

/// An actor system with as many threads as a server.
struct threads {
  caf::actor_system_config config;
  caf::actor_system system{prepare(config, std::nullopt)};
};

using go = caf::get_atom;
constexpr auto soon = std::chrono::seconds(20);

using maker = std::function<caf::behavior(caf::event_based_actor*)>;

/// CAF 0.17 forms an invalid reference for a function whose only parameter is the actor, which UBSan reports.
template<caf::spawn_options Options = caf::no_spawn_options>
caf::actor spawn(caf::actor_system& system, maker make) {
  return system.spawn<Options>([](caf::event_based_actor* self, const maker& how) { return how(self); },
                               std::move(make));
}

/// An actor that has not begun: its first message finds it at rest.
inline caf::actor spawn_at_rest(caf::actor_system& system, maker make) {
  return spawn<caf::lazy_init>(system, std::move(make));
}

} // namespace parley::actors::test
