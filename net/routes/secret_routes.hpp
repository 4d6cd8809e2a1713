#pragma once

#include "net/access/ephemeral_keys.hpp"
#include "net/routes/router.hpp"

#include <string_view>

// Ephemeral keys for browsers (docs/openai.md).
namespace parley::net {

/// Whether a request of this method for this path asks for an ephemeral key. It counts as a start of its client.
bool asks_for_secret(std::string_view method, std::string_view path);

/// `keys` must outlive the table. `transcribes`: sessions may have transcripts.
void add_secret_routes(router& table, const ephemeral_keys& keys, bool transcribes);

} // namespace parley::net
