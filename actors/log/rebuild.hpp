#pragma once

#include "actors/log/log_record.hpp"
#include "actors/replay/replay_buffer.hpp"
#include "protocol/session/sent_events.hpp"
#include "protocol/session/session_machine.hpp"

#include <tl/expected.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

// A session from its log: what had happened to it happens again, but nothing is sent. Pure.
namespace parley::actors {

/// What a log says about its session, without rebuilding it.
struct log_survey {
  logged::beginning begin;
  logged::tokens valid;
  std::size_t good_bytes = 0; ///< what follows is torn or damaged
  std::uint64_t taken_up = 0; ///< how often
};

/// Why a log cannot be used, in plain words.
using log_problem = std::string;

tl::expected<log_survey, log_problem> survey(std::string_view log);

/// The first record alone: `log` is the beginning of a file.
tl::expected<logged::beginning, log_problem> first_record(std::string_view log);

/// Bytes of a log from a place on, at most so many; fewer at its end.
using log_source = std::function<std::string(std::size_t most, std::size_t from)>;

/// What can be known of a log without reading its sound, and without checksums: before that work is done for somebody, and
/// the memory taken that it needs.
struct log_outline {
  bool knew_token = false;    ///< the token was valid at some time
  std::uint64_t taken_up = 0; ///< how often
};

/// Nothing is known of what is no log of this format.
log_outline outline(const log_source& log, std::string_view token);

struct rebuild_terms {
  std::size_t resume_bytes = 0; ///< settings `limits.resume_bytes` and `limits.journal_bytes`
  std::size_t most_replay_bytes = 64u << 20;
  bool legacy_extras = false;
  std::string shown_token;             ///< the client's, which must be one of `log_survey::valid`
  protocol::token_source fresh_tokens; ///< for the next ones
  protocol::time_point now;            ///< and the same as nanoseconds of Unix time
  std::int64_t now_ns = 0;
};

/// A session as it was when its process ended, without worker and client.
struct rebuilt_session {
  logged::beginning begin;
  protocol::time_point accepted; ///< in this process's time
  protocol::time_point now;      ///< when it was taken up
  std::unique_ptr<protocol::session_machine> machine;
  protocol::sent_events sent;
  replay_buffer kept;
  protocol::open_engine opened_with;
  protocol::effects first; ///< what the machine wants now
};

/// How many processes that took a session up may end, for whatever reason, before they have answered what was under way.
/// Then it is given up: that work may be the reason.
inline constexpr int most_attempts = 2;

/// Times are mapped so that the session's limits went on counting. A session that is over, or that cannot be rebuilt on
/// a worker, is a problem.
tl::expected<rebuilt_session, log_problem> rebuild(std::string_view log, const rebuild_terms& terms);

} // namespace parley::actors
