#pragma once

#include "actors/gateway_api.hpp"
#include "net/access/admission.hpp"
#include "net/access/api_keys.hpp"
#include "net/access/host_name.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace parley::net {

/// What a request reveals about its sender.
struct credentials {
  std::string_view authorization; ///< headers, empty if absent
  std::string_view subprotocols;
  std::string_view origin;
  std::string_view host;  ///< also empty if there are several
  bool forwarded = false; ///< a proxy says that it forwards for somebody else
  std::string_view query;
  std::string address; ///< whom limits apply to: an IPv6 network counts as one client
  bool from_loopback = false;
};

/// What a request may do besides public things.
struct permissions {
  std::optional<actors::principal>
      who;                ///< the sessions of its key, or all; none = it needs a key, or must come from this machine
  bool may_watch = false; ///< GET /status and GET /metrics: for keys and for the server's own machine
  bool key_asked = false;
};

/// Why a request is refused; the names are the reasons that are counted.
enum class refusal : int { key, origin, sessions, rate };

/// Access control: API keys, origins of pages, and the limits of one client. Thread-safe.
class access_control {
public:
  access_control(api_keys keys, std::string allowed_origins, server_names names, admission_limits limits)
      : keys_(std::move(keys)), allowed_origins_(std::move(allowed_origins)), names_(std::move(names)),
        admission_(limits) {}

  bool asks_for_keys() const { return keys_.asked(); }

  struct entry {
    std::optional<refusal> refused; ///< none = admitted
    std::string key;                ///< name of the API key
    admission::reservation reservation;
  };

  /// A new session, or a connection that resumes one: that counts as a start but not as one more session.
  entry let_in(const credentials& from, admission::time_point now, bool returning = false);

  /// For a request that needs no session.
  permissions permissions_of(const credentials& from) const;

  /// A page of another host must not use a browser's user permissions.
  bool may_come_from(const credentials& from) const;

private:
  bool is_local(const credentials& from) const;

  const api_keys keys_;
  const std::string allowed_origins_;
  const server_names names_;
  admission admission_;
};

} // namespace parley::net
