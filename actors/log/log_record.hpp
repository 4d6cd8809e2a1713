#pragma once

#include "conversation/engine.hpp"
#include "protocol/limits.hpp"
#include "protocol/session/session_machine.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

// What a session's log consists of: everything that happened to its machine, in order. As the machine is a pure function
// of that, repeating it gives the same session (rebuild.hpp).
namespace parley::actors {

/// SHA-256 of a resume token. The tokens themselves are not kept. All zero = none.
using token_hash = std::array<std::uint8_t, 32>;

namespace logged {

/// The first record: who it is, and what it may do.
struct beginning {
  std::int64_t accepted_ns = 0; ///< when its client connected, as nanoseconds of Unix time
  std::string mode;             ///< in the URL; empty = absent
  std::string session_id;
  std::string legacy_id;
  std::string recording_id; ///< empty = it is not recorded
  std::string remote;       ///< address of the client, its limits' group, and the name of its API key
  std::string group;
  std::string key;
  std::uint64_t id_seed = 0; ///< of the ids in its events (id_source.hpp)
  protocol::session_limits limits;
  protocol::capabilities able;
};

/// A text frame of the client; the first one is its session.init.
struct frame {
  std::shared_ptr<const std::string> text;
};

/// The engine's words, except while the session is being restored on another worker.
struct engine_word {
  conversation::event event;
};

enum class worker_change : std::uint8_t { granted, lost, restored };

/// A slot was granted or lost, or the session restored there.
struct worker_news {
  worker_change what = worker_change::granted;
};

/// A deadline passed.
struct tick {};

/// The server began to drain.
struct drain {};

/// The tokens that resume the session from here on: the newest, and the one used last until the client sends something.
struct tokens {
  token_hash newest{};
  token_hash used{};
};

/// Its client came back over another connection.
struct resumed {
  tokens valid;
};

/// Its process ended as planned, having told the client when to come back.
struct handed_over {
  std::int64_t back_after_ms = 0;
};

/// Another process took it up.
struct taken_up {};

/// A turn of its user was written down, or could not be.
struct user_turn {
  protocol::transcript heard;
};

} // namespace logged

using log_record = std::variant<logged::beginning, logged::frame, logged::engine_word, logged::worker_news,
                                logged::tick, logged::drain, logged::tokens, logged::resumed, logged::handed_over,
                                logged::taken_up, logged::user_turn>;

/// When it happened, counted from the session's `accepted`.
struct timed_record {
  std::chrono::nanoseconds at{};
  log_record what;
};

std::string pack(const timed_record& record);

/// What a packed record says about itself in its first bytes, without the rest being read. A record too short for that
/// has no kind, and time 0.
std::chrono::nanoseconds time_of(std::string_view packed);
std::size_t index_of(std::string_view packed);

/// The place of `Record` among the variant's alternatives.
template<class Record, class... Kinds>
constexpr std::size_t index_among(std::type_identity<std::variant<Kinds...>>) {
  std::size_t index = 0;
  static_cast<void>(((std::is_same_v<Record, Kinds> || (++index, false)) || ...));
  return index;
}

template<class Record>
bool kind_of(std::string_view packed) {
  return index_of(packed) == index_among<Record>(std::type_identity<log_record>());
}

/// Nothing if `pack` did not make the bytes.
std::optional<timed_record> unpack_record(std::string_view bytes);

} // namespace parley::actors
