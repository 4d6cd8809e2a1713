#pragma once

#include "actors/logger.hpp"

#include <caf/all.hpp>

#include <exception>

namespace parley::actors {

/// Installs an exception handler: an exception ends the actor, and those who monitor it learn of it. CAF would also
/// print it to standard output, which belongs to the ready line; so it would messages that the actor does not handle, which
/// are dropped. `last` is called first, on the actor's thread, and must not throw.
template<class Self, class Last>
void log_exceptions(Self* self, Last last) {
  self->set_default_handler(caf::drop);
  self->set_exception_handler([name = self->name(), last](std::exception_ptr& problem) -> caf::error {
    try {
      last();
      std::rethrow_exception(problem);
    } catch (const std::exception& e) {
      log()->error("{} ends: {}", name, e.what());
      return caf::make_error(caf::sec::runtime_error, std::string(e.what()));
    } catch (...) {
      log()->error("{} ends: an exception of unknown type", name);
      return caf::sec::runtime_error;
    }
  });
}

template<class Self>
void log_exceptions(Self* self) {
  log_exceptions(self, [] {});
}

} // namespace parley::actors
