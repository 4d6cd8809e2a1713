#pragma once

#include "base/token_bucket.hpp"
#include "protocol/events.hpp"
#include "protocol/guest/effects.hpp"
#include "protocol/guest/session.hpp"
#include "protocol/time_point.hpp"
#include "protocol/transcript.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace parley::protocol {

/// Writes down what is said in turns, or judges which functions they want called, one after the other, each in a chat session
/// of its own in the background: one that gets a slot which nobody else wants, and loses it when somebody does. Then it waits
/// for the next one.
///
/// A pure function of (state, event, time). Contract with the caller: carry out the effects in order; after every call,
/// set one timer to `next_deadline()` and call `tick` when it expires. Not thread-safe.
class transcriber {
public:
  struct terms {
    std::chrono::milliseconds patience = std::chrono::seconds(20);     ///< from the request to the last attempt's end
    std::chrono::milliseconds judged_within = std::chrono::seconds(8); ///< the same of a turn that is judged
    std::size_t most_waiting = 4;                                      ///< requests behind the one at work
    base::token_bucket sessions{16, 2};                                ///< that may be opened
  };

  /// The sessions are chat sessions in the background.
  using effect =
      std::variant<guest::open_session, guest::to_session, guest::turn_to_session, guest::drop_session, transcript>;
  using effects = std::vector<effect>;

  transcriber() = default;
  explicit transcriber(terms under) : terms_(under) {}

  /// Answered by a `transcript`, at once or later.
  effects want(transcript_request what, time_point now);

  /// An event of the session `number`, or its end. Those of sessions that were dropped are ignored.
  effects on_event(std::uint64_t number, const server_event& event);
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
    std::vector<conversation::tool_call> calls{}; ///< of this attempt
  };

  void heed(const session_created& event);
  void heed(const response_tool_call& event);
  void heed(const response_done& event);
  void heed(const error_event& event);
  void heed(const session_closed& event);
  void heed(const auto&) {}
  void begin_next();
  void answer(transcript_result how, std::string text = {}, const usage& used = {});
  void lose_session();
  effects take() { return std::exchange(out_, {}); }

  terms terms_;
  std::deque<job> jobs_;               ///< the first is at work
  time_point now_{};                   ///< when it was last told the time
  std::optional<time_point> opens_at_; ///< when the next session may be opened, if it has to wait
  effects out_;
  guest::session<effects> session_{out_}; ///< for the first job
};

/// The chat turn that asks for it.
chat_append_event transcription_turn(const transcript_request& what);

/// The chat turn that judges it. There must be an offer.
chat_append_event judging_turn(const transcript_request& what);

} // namespace parley::protocol
