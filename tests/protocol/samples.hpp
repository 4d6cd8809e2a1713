#pragma once

#include <string>
#include <string_view>
#include <vector>

// Events of every kind, to be checked against tests/data/protocol.schema.json.
namespace parley::protocol::test {

struct sample {
  std::string_view entry; ///< in the schema's $defs
  std::string text;
};

/// Every server event in every dialect that has it, encoded with and without each optional field.
std::vector<sample> server_samples();

/// Client events in their canonical spelling; the decoder accepts them all.
std::vector<sample> client_samples();

/// Client events that both the schema and the decoder refuse.
std::vector<sample> refused_client_samples();

} // namespace parley::protocol::test
