#pragma once

#include "actors/gateway_api.hpp"
#include "base/current.hpp"
#include "net/access/admission.hpp"
#include "net/access/api_keys.hpp"
#include "net/access/ephemeral_keys.hpp"
#include "net/access/key_usage.hpp"
#include "net/host_name.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace parley::net {

/// What a request reveals about its sender.
struct credentials {
  std::string_view authorization; ///< headers, empty if absent
  std::string_view api_key{};     ///< a key alone, as Azure's clients send it
  std::string_view subprotocols;
  std::string_view origin;
  std::string_view host;  ///< also empty if there are several
  bool forwarded = false; ///< a proxy says that it forwards a request
  std::string_view query;
  std::string address; ///< the client to which limits apply; an IPv6 network counts as one client
  bool from_loopback = false;
};

/// What a request may do beyond public routes.
struct permissions {
  std::optional<actors::principal>
      who;                ///< whose sessions it may see: its key's, or all; none = it needs a key or a local address
  bool may_watch = false; ///< GET /status and GET /metrics: with a key, or from the server's own machine
  bool key_asked = false;
  bool page_may_open = false; ///< whether a page that was loaded under the name in the header Host may open sessions
};

/// Why a request is refused; metrics count refusals by these names.
enum class refusal : int { key, origin, sessions, rate, quota };

/// Access control: API keys, origins of pages, and limits per client and per key. Thread-safe.
class access_control {
public:
  access_control(api_keys keys, std::string allowed_origins, server_names names, admission_limits limits,
                 ephemeral_keys ephemeral = ephemeral_keys(),
                 std::shared_ptr<key_usage> usage = std::make_shared<key_usage>())
      : keys_(std::make_unique<base::current<const api_keys>>(std::make_shared<const api_keys>(std::move(keys)))),
        ephemeral_(std::move(ephemeral)), allowed_origins_(std::move(allowed_origins)), names_(std::move(names)),
        usage_(std::move(usage)), admission_(limits) {
    usage_->set_limits(keys_->get()->limits());
  }

  bool asks_for_keys() const { return keys_->get()->asked(); }

  /// The keys at this moment.
  std::shared_ptr<const api_keys> keys() const { return keys_->get(); }
  void replace_keys(std::shared_ptr<const api_keys> next) {
    usage_->set_limits(next->limits());
    keys_->set(std::move(next));
  }

  const key_usage& usage() const { return *usage_; }

  /// Whether a client with that key, by its name, would still be let in.
  bool still_lists(std::string_view name) const {
    const auto now = keys();
    return !now->asked() || now->has_owner(name);
  }

  const ephemeral_keys& ephemeral() const { return ephemeral_; }

  struct entry {
    std::optional<refusal> refused; ///< none = admitted
    std::string key;                ///< name of the API key
    admission::reservation reservation;
    std::optional<std::string> session{};          ///< with an ephemeral key: what the session begins with, JSON
    std::optional<usage_ledger::standing> spent{}; ///< of `refusal::quota`
  };

  /// What asks to be let in: a session, a connection that resumes one, or something that holds nothing. The last two
  /// count as a start, but not as one more session.
  struct visit {
    bool returning = false;
    bool realtime = false; ///< a WebSocket with a session, for which ephemeral keys are good
  };
  entry let_in(const credentials& from, admission::time_point now, visit why);
  entry let_in(const credentials& from, admission::time_point now, bool returning = false) {
    return let_in(from, now, visit{returning, false});
  }

  /// For sessions that a connection of this client starts later.
  std::shared_ptr<actors::start_limit> starts_of(std::string address, std::string key) const {
    const auto own = own_limits_of(key);
    return admission_.starts_of(std::move(address), std::move(key), own);
  }

  /// Permissions of a request that needs no session.
  permissions permissions_of(const credentials& from) const;

  /// Whether its origin is acceptable: a page of another host must not use a browser user's permissions.
  bool may_come_from(const credentials& from) const;

private:
  /// Whose key it is; nothing if it needs one and has none.
  std::optional<entry> owner_of(const credentials& from, bool realtime) const;
  own_limits own_limits_of(const std::string& key) const;
  bool is_local(const credentials& from) const;
  bool page_may_open(std::string_view host) const;

  std::unique_ptr<base::current<const api_keys>> keys_;
  const ephemeral_keys ephemeral_;
  const std::string allowed_origins_;
  const server_names names_;
  const std::shared_ptr<key_usage> usage_;
  admission admission_;
};

} // namespace parley::net
