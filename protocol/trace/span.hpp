#pragma once

#include "protocol/time_point.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What a trace consists of (OpenTelemetry). Names, numbers and times of what happened; never what was said, shown or asked.
namespace parley::protocol::trace {

using trace_id = std::array<std::uint8_t, 16>;
using span_id = std::array<std::uint8_t, 8>;

struct attribute {
  using value_type = std::variant<std::string, std::int64_t, double>;
  std::string key;
  value_type value;
  bool list = false; ///< it is written as a list with this one member
};

/// A moment within a span.
struct moment {
  std::string_view name; ///< a literal
  std::int64_t at_ns = 0;
};

enum class span_kind : std::uint8_t { internal = 1, server = 2 }; // OTLP's numbers

/// Something that took a while. Times in nanoseconds since 1970.
struct span {
  trace_id trace{};
  span_id id{};
  std::optional<span_id> parent{};
  bool parent_is_remote = false;
  std::uint8_t flags = 0;                        ///< of the trace (W3C Trace Context)
  std::shared_ptr<const std::string> state = {}; ///< `tracestate`; null = none
  std::string name;
  span_kind kind = span_kind::internal;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::vector<attribute> attributes = {};
  std::vector<moment> moments = {};
  std::string error = {}; ///< one of a few words; empty = it went well
};

/// Where spans go when they are over. Thread-safe, and never blocks.
class span_sink {
public:
  virtual ~span_sink() = default;
  virtual void take(span&& what) = 0;
};

/// What the clock that nobody sets showed when the calendar's showed that time.
struct clock_pair {
  time_point steady;
  std::int64_t unix_ns = 0;

  std::int64_t ns_at(time_point when) const {
    return unix_ns + std::chrono::duration_cast<std::chrono::nanoseconds>(when - steady).count();
  }
};

} // namespace parley::protocol::trace
