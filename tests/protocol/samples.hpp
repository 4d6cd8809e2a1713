#pragma once

#include <string>
#include <string_view>
#include <vector>

// Events of every kind, to be held against tests/data/protocol.schema.json.
namespace parley::protocol::test {

struct sample {
  std::string_view entry; ///< of the schema's $defs
  std::string text;
};

/// Every server event in every dialect that has it, encoded, with each optional field present and absent.
std::vector<sample> server_samples();

/// Client events in their canonical spelling: the decoder takes them all.
std::vector<sample> client_samples();

/// Client events that both the schema and the decoder refuse.
std::vector<sample> refused_client_samples();

} // namespace parley::protocol::test
