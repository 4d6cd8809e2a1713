#pragma once

#include "actors/gateway_api.hpp"
#include "net/access/ephemeral_keys.hpp"
#include "net/access/key_usage.hpp"
#include "net/call_acceptor.hpp"
#include "net/default_voice.hpp"
#include "net/meters.hpp"
#include "net/routes/router.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace parley::net {

/// Where the routes get their answers.
struct route_sources {
  actors::gateway_api& core;
  default_voice voice;
  std::string model; ///< the id in GET /v1/models; empty = that of the core's workers, once one is known
  meters& counted;
  std::function<std::size_t()> connections; ///< open sockets
  std::int64_t created_s = 0;               ///< shown for the model: Unix time of the start
  const ephemeral_keys* secrets = nullptr;  ///< null = none are made
  bool transcribes = false;                 ///< OpenAI's sessions may have transcripts
  std::function<call_acceptor*()> calls{};  ///< null, or of null = there is no WebRTC
  const key_usage* usage = nullptr;         ///< null = nobody counts
};

/// All routes of docs/protocol.md 13. `core` and `counted` must outlive the table.
router make_routes(route_sources sources);

} // namespace parley::net
