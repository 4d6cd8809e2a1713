#pragma once

#include "protocol/errors.hpp"
#include "protocol/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace parley::protocol {

/// What a new connection presents to resume a session (docs/protocol.md 14).
struct resume_claim {
  std::string token;
  std::uint64_t last_event_id = 0; ///< the last event that the client has received; 0 = none
};

/// `last_event_id` of the query; absent = 0. Anything that is not a number is resume_refused.
result<std::uint64_t> read_event_id(const std::optional<std::string>& text);

/// The answer if a resume request names a session that is over or never existed, or has a wrong or used-up token: it
/// never reveals which.
error no_such_claim();

/// The answer while the session waits for the next process.
error server_restarts();

/// The right to resume a session: a secret that changes with each use. A used token stays valid until the client sends
/// something on its new connection, because only then is it known to have received the next token.
class resume_token {
public:
  explicit resume_token(std::string first) : token_(std::move(first)) {}

  const std::string& token() const { return token_; }

  /// The token used last, if it is still valid; else empty.
  const std::string& used() const { return used_; }

  /// Takes the same time for every token of the right length.
  bool opens(std::string_view token) const;

  /// Call when the session was resumed with the token `used`.
  void renew(std::string_view used, std::string next);

  /// The client has the newest token, so the previous one expires.
  void confirm() { used_.clear(); }

private:
  std::string token_;
  std::string used_; ///< the token used last; empty = expired
};

} // namespace parley::protocol
