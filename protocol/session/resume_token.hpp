#pragma once

#include "protocol/errors.hpp"
#include "protocol/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol {

/// What a new connection presents to resume a session (docs/protocol.md 14).
struct resume_claim {
  std::string token;
  std::uint64_t last_event_id = 0; ///< of the last event that the client has received; 0 = none
};

/// `last_event_id` of the query; absent = 0. Anything that is not a number is resume_refused.
result<std::uint64_t> read_event_id(const std::optional<std::string>& text);

/// The answer to a resume request for a session that is over or never existed, and to one with a wrong or used-up
/// token: nobody can tell which it was.
error no_such_claim();

/// The right to resume a session: a secret that changes each time it is used. The token that was used stays valid until
/// the client has sent something on its new connection, because only then is it known to have the next one.
class resume_token {
public:
  explicit resume_token(random_source& random) : token_(make_resume_token(random)) {}

  const std::string& token() const { return token_; }

  /// Takes the same time for every token of the right length.
  bool opens(std::string_view token) const;

  /// The session was resumed with this token.
  void renew(std::string_view used, random_source& random);

  /// The client has the newest token: the previous one is used up.
  void confirm() { used_.clear(); }

private:
  std::string token_;
  std::string used_; ///< the last one; empty = used up
};

} // namespace parley::protocol
