#include "base/assert.hpp"
#include "base/expect.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace parley::base {

namespace {

void print(const assertion_site& site) noexcept {
  std::fprintf(stderr, "%s:%d: invariant violated: %s (%s)\n", site.file, site.line, site.meaning, site.condition);
}

std::atomic<violation_handler> handler{print};
std::atomic<std::uint64_t> violations{0};

} // namespace

void set_violation_handler(violation_handler next) noexcept {
  handler = next ? next : print;
}

std::uint64_t violation_count() noexcept {
  return violations;
}

void note_violation(const assertion_site& site, std::atomic<bool>& reported) noexcept {
  ++violations;
#ifdef PARLEY_ABORT_ON_VIOLATION
  (void)reported;
  print(site);
  std::abort();
#else
  if (!reported.exchange(true)) handler.load()(site);
#endif
}

void violate(const assertion_site& site, std::atomic<bool>& reported) {
  note_violation(site, reported);
  throw invariant_violation(std::string(site.meaning) + " (" + site.condition + ")");
}

} // namespace parley::base
