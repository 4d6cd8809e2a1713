#pragma once

#include "actors/front_door.hpp"
#include "net/admission.hpp"
#include "net/api_keys.hpp"
#include "net/host_name.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace parley::net {

/// What a request shows of who sends it.
struct visitor {
  std::string_view authorization; ///< headers, empty if absent
  std::string_view subprotocols;
  std::string_view origin;
  std::string_view host;  ///< empty also if there are several
  bool forwarded = false; ///< a proxy says that it speaks for somebody else
  std::string_view query;
  std::string address; ///< clients of one address are one client: an IPv6 network counts as one
  bool from_loopback = false;
};

/// What a request may do besides the public things.
struct rights {
  std::optional<actors::requester>
      who;                ///< the sessions of its key, or all; none = it has to show a key, or come from here
  bool may_watch = false; ///< GET /status and GET /metrics: for keys and for the machine of the server
  bool key_asked = false;
};

/// Why somebody is not let in; the names are the reasons that are counted.
enum class refusal : int { key, origin, sessions, rate };

/// Who may come in and what they may do: API keys, origins of pages, and how much one client may have. Thread-safe.
class gate {
public:
  gate(api_keys keys, std::string allowed_origins, server_names names, admission_limits limits)
      : keys_(std::move(keys)), allowed_origins_(std::move(allowed_origins)), names_(std::move(names)),
        admission_(limits) {}

  bool asks_for_keys() const { return keys_.asked(); }

  struct entry {
    std::optional<refusal> refused; ///< none = come in
    std::string key;                ///< name of the API key
    admission::pass pass;
  };

  /// A new session, or a connection that goes on with one: that counts as a start and not as one more session.
  entry let_in(const visitor& from, admission::time_point now, bool returning = false);

  /// Of a request that needs no session.
  rights rights_of(const visitor& from) const;

  /// A page elsewhere may not make a browser do what its user may do.
  bool may_come_from(const visitor& from) const;

private:
  bool is_local(const visitor& from) const;

  const api_keys keys_;
  const std::string allowed_origins_;
  const server_names names_;
  admission admission_;
};

} // namespace parley::net
