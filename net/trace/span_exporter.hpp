#pragma once

#include "net/trace/collector.hpp"
#include "net/trace/span_counts.hpp"
#include "protocol/trace/otlp_json.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace parley::net {

struct export_options {
  collector to;
  header_list headers;
  protocol::trace::resource from;
  std::size_t most_waiting = 4096; ///< further spans are dropped
  std::size_t batch = 512;         ///< of one request
  std::chrono::milliseconds gather{1000};
  std::chrono::milliseconds timeout{10000};    ///< of one request
  int retries = 3;                             ///< of one that may do better later
  std::chrono::milliseconds retry_after{1000}; ///< twice as long before each further one
};

/// Sends spans to a collector (OTLP/HTTP in JSON), on a thread of its own. Whoever hands them over never waits for that. What
/// cannot be sent is dropped and counted. Redirects are not followed, and of an answer only the head is read.
class span_exporter final : public protocol::trace::span_sink {
public:
  /// \throws config::settings_error if there are no certificates to judge the collector's with
  span_exporter(export_options options, std::shared_ptr<span_counts> counts);
  ~span_exporter() override;

  void take(protocol::trace::span&& what) override;

  /// From the next request on.
  void replace_headers(header_list headers);

  /// Sends what waits, for no longer than that, and ends; what comes later is dropped. A second call does nothing.
  void finish(std::chrono::milliseconds within);

private:
  class impl;
  const std::shared_ptr<impl> impl_;
};

} // namespace parley::net
