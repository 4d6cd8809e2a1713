#pragma once

#include "protocol/events.hpp"
#include "protocol/guest/effects.hpp"
#include "protocol/time_point.hpp"
#include "protocol/transcript.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

// What stands between a client of another dialect than ours and the sessions whose guest it is.
namespace parley::protocol::openai {

// What an adapter wants done, in order.

/// Queue this text frame for the client.
struct to_client {
  std::string frame;
};

/// Have the client of a call hear this, after all that it is yet to hear: samples at 24 kHz.
struct play_sound {
  pcm sound;
};

/// Drop what it is yet to hear.
struct drop_sound {};

/// The last effect on the client's socket.
struct end_client {
  std::uint16_t code = 1000;
  std::string reason;
};

/// Have a turn of the user written down in the background; `on_transcript` gets the answer.
struct transcribe {
  transcript_request what;
};

/// Something for the server's statistics.
struct note {
  enum class what : std::uint8_t {
    turn,      ///< the user has begun one
    barge_in,  ///< and interrupts an answer with it
    side_turn, ///< chat is asked for an answer
    tool_call,
    error, ///< `word`: its code
    lane   ///< from now on answers come about in this way; `word`: its name
  };
  what about;
  std::string word{};
};
inline constexpr std::string_view note_words[] = {"turn", "barge_in", "side_turn", "tool_call", "error", "lane"};

/// How a turn of the user's is answered, for traces.
struct turn_moment {
  enum class what : std::uint8_t {
    speech_ended, ///< what was said is complete
    sound,        ///< the first sound of an answer goes to the client
    answered      ///< an answer of the conversation is over, without sound
  };
  what about;
  std::chrono::milliseconds ago{}; ///< of speech: how much of the sound since then was silence
};

using effect = std::variant<to_client, play_sound, drop_sound, end_client, guest::open_session, guest::to_session,
                            guest::turn_to_session, guest::drop_session, transcribe, note, turn_moment>;
using effects = std::vector<effect>;

/// The server's side of a dialect, as a pure function of (state, event, time).
///
/// Contract with the caller: carry out the effects in order; after every call, set one timer to `next_deadline()` and
/// call `tick` when it expires. Never throws for anything that a client can cause. Not thread-safe.
class adapter {
public:
  adapter() = default;
  virtual ~adapter() = default;
  adapter(const adapter&) = delete;
  adapter& operator=(const adapter&) = delete;

  /// The first call.
  virtual effects start(time_point now) = 0;

  /// A text frame of the client, valid UTF-8.
  virtual effects on_frame(std::string_view frame, time_point now) = 0;

  /// Sound of a call, which comes beside the frames: samples at 16 kHz.
  virtual effects on_sound(std::span<const float>, time_point) { return {}; }

  /// An event of the inner session `number`, or its end. Those of sessions that were dropped are ignored.
  virtual effects on_inner_event(std::uint64_t number, const server_event& event, time_point now) = 0;
  virtual effects on_inner_closed(std::uint64_t number, time_point now) = 0;

  /// The answer to a `transcribe`.
  virtual effects on_transcript(const transcript& heard, time_point now) = 0;

  /// The server shuts down: what is being said may end.
  virtual effects on_drain(time_point now) = 0;
  virtual effects tick(time_point now) = 0;
  virtual std::optional<time_point> next_deadline() const = 0;

  virtual const std::string& id() const = 0;
};

} // namespace parley::protocol::openai
