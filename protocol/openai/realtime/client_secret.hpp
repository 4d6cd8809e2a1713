#pragma once

#include "protocol/openai/realtime/session_config.hpp"
#include "protocol/openai/shared/fault.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Ephemeral keys as OpenAI's HTTP routes ask for them and answer.
namespace parley::protocol::openai::realtime {

/// The routes' two forms: `/v1/realtime/client_secrets`, and the beta's `/v1/realtime/sessions`, whose body and answer
/// are a session.
enum class secret_form : std::uint8_t { ga, beta };

struct secret_request {
  int seconds = 600;          ///< how long the key is to be valid: 10 to 7,200
  std::string session = "{}"; ///< JSON in the GA form: what the client's sessions begin with
  session_config config{};    ///< the same, read
};

/// Reads the body of a request; empty = all defaults. `most_session_bytes`: of the session in the GA form.
result<secret_request> read_secret_request(std::string_view body, secret_form form, std::size_t most_session_bytes);

/// The answer. `session_id`: a new one.
std::string encode_secret(const secret_request& asked, secret_form form, std::string_view key, std::int64_t expires_at,
                          std::string_view session_id);

/// A session that begins with `session`, JSON in the GA form, on top of `before`; `before` if it cannot be read.
session_config with_defaults(const session_config& before, std::string_view session);

} // namespace parley::protocol::openai::realtime
