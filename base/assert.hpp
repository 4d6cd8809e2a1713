#pragma once
// Invariants, stated where they hold and checked in every build.
//
//   PARLEY_ASSERT(condition, "what must hold, in words");
//
// A condition that does not hold is a defect of ours, never something that a client can cause. Sanitized builds (`dev`,
// `tsan`, `fuzz`) print it and abort. Other builds report the first violation at each place to the handler, count all
// of them, and throw `invariant_violation`, which the code that isolates sessions from each other turns into the end of
// that one session. Cheap conditions only: they run in release builds, too.

#include <atomic>
#include <cstdint>
#include <stdexcept>

namespace parley::base {

/// A broken invariant. Caught only where one session's work is isolated from that of others.
class invariant_violation final : public std::logic_error {
  using std::logic_error::logic_error;
};

/// The location of an assertion. All strings are literals.
struct assertion_site {
  const char* condition;
  const char* meaning;
  const char* file;
  int line;
};

/// Receives the first violation at each place. Called on the thread that found it; must not throw.
using violation_handler = void (*)(const assertion_site&) noexcept;

/// Replaces the handler; the first one writes to standard error. Thread-safe.
void set_violation_handler(violation_handler handler) noexcept;

/// Number of violations in this process since it started. Thread-safe.
std::uint64_t violation_count() noexcept;

/// What PARLEY_ASSERT does if its condition is false. `reported`: whether this place has called the handler.
[[noreturn]] void violate(const assertion_site& site, std::atomic<bool>& reported);

} // namespace parley::base

#define PARLEY_ASSERT(condition, meaning)                                                                              \
  do {                                                                                                                 \
    if (!(condition)) [[unlikely]] {                                                                                   \
      static std::atomic<bool> parley_reported{false};                                                                 \
      ::parley::base::violate({#condition, meaning, __FILE__, __LINE__}, parley_reported);                             \
    }                                                                                                                  \
  } while (false)
