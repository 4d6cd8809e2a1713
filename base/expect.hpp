#pragma once

#include "base/assert.hpp"

namespace parley::base {

/// What PARLEY_EXPECT does if its condition is false: the same as `violate`, but it returns.
void note_violation(const assertion_site& site, std::atomic<bool>& reported) noexcept;

} // namespace parley::base

/// PARLEY_ASSERT for destructors and other code that must not throw: a violation is counted and reported in the same
/// way, and execution continues. Sanitized builds abort.
#define PARLEY_EXPECT(condition, meaning)                                                                              \
  do {                                                                                                                 \
    if (!(condition)) [[unlikely]] {                                                                                   \
      static std::atomic<bool> parley_reported{false};                                                                 \
      ::parley::base::note_violation({#condition, meaning, __FILE__, __LINE__}, parley_reported);                      \
    }                                                                                                                  \
  } while (false)
