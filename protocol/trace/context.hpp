#pragma once

#include "protocol/ids.hpp"
#include "protocol/trace/span.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

// Which trace a request belongs to: W3C Trace Context, and OpenTelemetry's sampling by the parent.
namespace parley::protocol::trace {

inline constexpr std::size_t most_state_bytes = 512; ///< of `tracestate`; what is longer is left out
inline constexpr std::uint8_t sampled_flag = 1;
inline constexpr std::uint8_t random_flag = 2; ///< the trace id is random (Trace Context, level 2)

/// The span of a client's in which it calls us.
struct caller {
  trace_id trace{};
  span_id span{};
  std::uint8_t flags = 0;
  std::string state{}; ///< its `tracestate`, or empty

  bool sampled() const { return (flags & sampled_flag) != 0; }
};

/// Reads the headers of a request, each joined by commas if it was sent more than once. None unless there is one
/// `traceparent` and it is what the specification says; a bad `tracestate` alone is left out.
std::optional<caller> read_caller(std::string_view traceparent, std::string_view tracestate);

/// Whether it is a `tracestate` as specified, no longer than `most_state_bytes`.
bool is_tracestate(std::string_view text);

/// Two lower-case digits a byte.
std::string hex(const std::uint8_t* bytes, std::size_t size);
template<std::size_t N>
std::string hex(const std::array<std::uint8_t, N>& id) {
  return hex(id.data(), N);
}

/// Where the spans of one connection or session go. `self` is the id of the span around all of them.
struct scope {
  trace_id trace{};
  span_id self{};
  std::optional<span_id> parent{};
  bool parent_is_remote = false;
  std::uint8_t flags = 0;
  std::shared_ptr<const std::string> state = {};
  std::shared_ptr<span_sink> to = {}; ///< null = this trace is not sampled

  /// A `traceparent` that names `self`.
  std::string traceparent() const;
};

/// Begins traces. Thread-safe, if `random` is.
class tracer {
public:
  /// `sample`: the share of traces that are sampled, of those that begin here.
  tracer(double sample, random_source random, std::shared_ptr<span_sink> to)
      : sample_(sample), random_(std::move(random)), to_(std::move(to)) {}

  /// For a request with these headers, as `read_caller` takes them: part of its client's trace, sampled if that is, or a
  /// trace of its own.
  std::shared_ptr<const scope> begin(std::string_view traceparent, std::string_view tracestate) const;

private:
  const double sample_;
  const random_source random_;
  const std::shared_ptr<span_sink> to_;
};

span_id make_span_id(const random_source& random);

/// Whether a trace with this id is among that share of all: the same for everybody who asks.
bool is_among(double share, const trace_id& id);

/// A part of `whole` with a span of its own around it.
std::shared_ptr<const scope> inside(const scope& whole, const random_source& random);

} // namespace parley::protocol::trace
