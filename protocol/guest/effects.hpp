#pragma once

#include "protocol/errors.hpp"
#include "protocol/events.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

// What a client inside the process wants done about its session. Such a client is a guest: it says and hears events, never
// frames.
namespace parley::protocol::guest {

/// A chat turn that may take long to make. Immutable: any thread may make it.
class deferred_turn {
public:
  deferred_turn() = default;
  virtual ~deferred_turn() = default;
  deferred_turn(const deferred_turn&) = delete;
  deferred_turn& operator=(const deferred_turn&) = delete;

  /// About how many bytes it would have on the wire.
  virtual std::size_t bytes() const = 0;

  /// Whether that may take longer than its size suggests: a few bytes of a file may be a minute of sound.
  virtual bool holds_files() const { return false; }
  virtual result<chat_append_event> make() const = 0;
};

/// Open a session. At most one is open at a time.
struct open_session {
  std::uint64_t number = 0; ///< from 1
  mode kind = mode::chat;
};
struct to_session {
  std::uint64_t number = 0;
  client_event event;
};

/// The turn for which a chat session was opened: make it where that keeps nobody waiting.
struct turn_to_session {
  std::uint64_t number = 0;
  std::shared_ptr<const deferred_turn> turn;
};

/// The session has been told to close, and nothing that it says matters any more.
struct drop_session {
  std::uint64_t number = 0;
  bool unused = false; ///< a chat session that never got its turn
};

} // namespace parley::protocol::guest
