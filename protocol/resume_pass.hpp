#pragma once

#include "protocol/errors.hpp"
#include "protocol/ids.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parley::protocol {

/// What a new connection shows to go on with a session (docs/PROTOCOL_EXTENSIONS.md).
struct resume_claim {
  std::string token;
  std::uint64_t last_event_id = 0; ///< of the last event that the client has; 0 = it has none
};

/// `last_event_id` of the query; absent = 0. What is no number is resume_refused.
result<std::uint64_t> read_event_id(const std::optional<std::string>& text);

/// What is answered to a claim of a session that is over or never was, and to one with a wrong or used-up token: nobody
/// learns which it was.
error no_such_claim();

/// The right to take a session up again: a secret that changes each time it is used. The one that was used stays good
/// until the client has spoken on its new connection, for only then it is known to have the next.
class resume_pass {
public:
  explicit resume_pass(random_source& random) : token_(make_resume_token(random)) {}

  const std::string& token() const { return token_; }

  /// Takes the same time for every token of the right length.
  bool opens(std::string_view token) const;

  /// It was used, with this token.
  void renew(std::string_view used, random_source& random);

  /// The client has the newest token: the one before is used up.
  void settle() { used_.clear(); }

private:
  std::string token_;
  std::string used_; ///< the last one; empty = used up
};

} // namespace parley::protocol
