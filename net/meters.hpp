#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace parley::net {

enum class refusal : int; // defined in net/access/access_control.hpp

/// What the network side counts for GET /metrics. Thread-safe.
class meters {
public:
  meters();

  void refused(refusal why) { refused_[static_cast<std::size_t>(why)]->Increment(); }
  void answered(unsigned status) { requests_.Add({{"status", std::to_string(status)}}).Increment(); }

  /// Bytes waiting in all outboxes. Shared, because links may outlive the server.
  std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes() const { return outbox_bytes_; }

  /// Everything in Prometheus's text format.
  std::string text(std::size_t connections);

private:
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Gauge& connections_;
  prometheus::Gauge& outbox_;
  std::array<prometheus::Counter*, 5> refused_;
  std::shared_ptr<std::atomic<std::int64_t>> outbox_bytes_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

} // namespace parley::net
