#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

// Ids of the wire (docs/protocol.md section 4). Randomness is injected: a cryptographic source in the server, a seeded
// one in tests.
namespace parley::protocol {

/// Returns 64 random bits per call.
using random_source = std::function<std::uint64_t()>;

/// `sess_` + 20 characters of base32 (100 bits): unguessable.
std::string make_session_id(random_source& random);

/// `ticket_` + 12 hex digits.
std::string make_ticket_id(random_source& random);

/// `resp_` + 12 hex digits.
std::string make_response_id(random_source& random);

/// `prefix` + 20 characters of base32, for the ids of OpenAI's Realtime API.
std::string make_id(random_source& random, std::string_view prefix);

/// `resume_` + 32 characters of base32 (160 bits): a secret.
std::string make_resume_token(random_source& random);

/// Returns a new resume token per call.
using token_source = std::function<std::string()>;

/// The id requested with `?session_id=`: characters outside `[A-Za-z0-9_-]` become `_`, and it is cut to 64 characters.
/// Empty if none was requested.
std::string sanitise_session_id(std::string_view asked);

/// Whether it is an id as the above returns, at most so long, and not empty: it can be the name of a file.
bool is_session_id(std::string_view id, std::size_t most = 64);

/// `rt_<unix ms>`, incremented until it is unique. Thread-safe; one per process.
class legacy_ids {
public:
  std::string next(std::int64_t unix_ms);

private:
  std::atomic<std::int64_t> last_{0};
};

} // namespace parley::protocol
