#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

// Metrics of a registry, which owns them.
namespace parley::actors {

inline prometheus::Family<prometheus::Counter>& counter_family(prometheus::Registry& in, const char* name,
                                                               const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(in);
}
inline prometheus::Family<prometheus::Gauge>& gauge_family(prometheus::Registry& in, const char* name,
                                                           const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(in);
}

/// Without labels.
inline prometheus::Counter& plain_counter(prometheus::Registry& in, const char* name, const char* help) {
  return counter_family(in, name, help).Add({});
}
inline prometheus::Gauge& plain_gauge(prometheus::Registry& in, const char* name, const char* help) {
  return gauge_family(in, name, help).Add({});
}

} // namespace parley::actors
