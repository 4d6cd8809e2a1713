#pragma once

#include "actors/log/log_record.hpp"
#include "protocol/session/resume_token.hpp"

#include <string_view>

namespace parley::actors {

/// All zero for an empty token.
token_hash hash_of(std::string_view token);

/// What a log keeps of a session's tokens.
logged::tokens hashes_of(const protocol::resume_token& token);

/// Takes the same time for every token.
bool opens(const logged::tokens& valid, std::string_view token);

} // namespace parley::actors
