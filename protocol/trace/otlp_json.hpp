#pragma once

#include "protocol/trace/span.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parley::protocol::trace {

/// Who sends the spans.
struct resource {
  std::string version; ///< of Parley
  std::vector<attribute> attributes;
};

/// The body of an ExportTraceServiceRequest in OTLP's JSON. Texts are made valid UTF-8, and cut after 256 bytes.
std::string encode(const resource& from, std::span<const span> spans);

} // namespace parley::protocol::trace
