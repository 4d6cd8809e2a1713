#include "protocol/conformance/tables.hpp"

namespace parley::protocol::conformance {

extern const char openai_events[]; // generated from openai_events.json

const nlohmann::json& tables(const char* dialect) {
  static const auto all = nlohmann::json::parse(openai_events);
  return all.at(dialect);
}

} // namespace parley::protocol::conformance
