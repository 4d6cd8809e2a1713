#include "net/meters.hpp"

#include <prometheus/text_serializer.h>

namespace parley::net {

meters::meters()
    : requests_(prometheus::BuildCounter()
                    .Name("parley_http_requests_total")
                    .Help("Answered HTTP requests, by status.")
                    .Register(registry_)),
      connections_(
          prometheus::BuildGauge().Name("parley_connections").Help("Open sockets.").Register(registry_).Add({})),
      outbox_(prometheus::BuildGauge()
                  .Name("parley_outbox_bytes")
                  .Help("Bytes that wait to be written to clients.")
                  .Register(registry_)
                  .Add({})) {
  auto& refused = prometheus::BuildCounter()
                      .Name("parley_refused_total")
                      .Help("Sessions refused before the upgrade, by reason.")
                      .Register(registry_);
  refused_ = {&refused.Add({{"reason", "key"}}), &refused.Add({{"reason", "origin"}}),
              &refused.Add({{"reason", "sessions"}}), &refused.Add({{"reason", "rate"}}),
              &refused.Add({{"reason", "quota"}})};
  prometheus::BuildGauge()
      .Name("parley_build_info")
      .Help("1; the labels tell the version.")
      .Register(registry_)
      .Add({{"version", PARLEY_VERSION}})
      .Set(1);
}

std::string meters::text(std::size_t connections) {
  connections_.Set(static_cast<double>(connections));
  outbox_.Set(static_cast<double>(outbox_bytes_->load(std::memory_order_relaxed)));
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

} // namespace parley::net
