#pragma once

#include "base/token_bucket.hpp"
#include "protocol/transcription/transcript.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace parley::protocol {

/// Writes down what is said in turns, one after the other, each in a chat session of its own in the background: one that
/// gets a slot which nobody else wants, and loses it when somebody does. Then it waits for the next one.
///
/// A pure function of (state, event, time). Contract with the caller: carry out the effects in order; after every call,
/// set one timer to `next_deadline()` and call `tick` when it expires. Not thread-safe.
class transcriber {
public:
  using time_point = std::chrono::steady_clock::time_point;

  struct terms {
    std::chrono::milliseconds patience = std::chrono::seconds(20); ///< from the request to the last attempt's end
    std::size_t most_waiting = 4;                                  ///< requests behind the one at work
    base::token_bucket sessions{16, 2};                            ///< that may be opened
  };

  /// Open a chat session in the background. At most one is open at a time.
  struct open_session {
    std::uint64_t number = 0;
  };
  struct to_session {
    std::uint64_t number = 0;
    std::string frame;
  };
  struct drop_session {
    std::uint64_t number = 0;
  };
  using effect = std::variant<open_session, to_session, drop_session, transcript>;
  using effects = std::vector<effect>;

  transcriber() = default;
  explicit transcriber(terms under) : terms_(under) {}

  /// Answered by a `transcript`, at once or later.
  effects want(transcript_request what, time_point now);

  /// A frame of the session `number`, or its end. Those of sessions that were dropped are ignored.
  effects on_frame(std::uint64_t number, std::string_view frame);
  effects on_closed(std::uint64_t number);

  effects tick(time_point now);
  std::optional<time_point> next_deadline() const;

  /// Everything that was asked for and not answered fails.
  effects give_up();

private:
  struct job {
    transcript_request what;
    time_point until;
    int attempts = 0;
  };

  void begin_next();
  void answer(transcript_result how, std::string text = {});
  void close();
  void lose_session();
  effects take() { return std::exchange(out_, {}); }

  terms terms_;
  std::deque<job> jobs_;     ///< the first is at work
  std::uint64_t number_ = 0; ///< of the session for it; the last one's, if none is open
  bool open_ = false;
  bool begun_ = false;                 ///< it has its slot
  time_point now_{};                   ///< when it was last told the time
  std::optional<time_point> opens_at_; ///< when the next session may be opened, if it has to wait
  effects out_;
};

/// The chat turn that asks for it: the frame `input.append` (docs/protocol.md 3.5).
std::string encode_transcription_turn(const transcript_request& what);

} // namespace parley::protocol
