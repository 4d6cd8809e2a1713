#pragma once

#include "conversation/message.hpp"
#include "conversation/tools.hpp"
#include "protocol/time_point.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::protocol {

/// Of a function's result; with its call it is one append's worth of context.
inline constexpr std::size_t max_tool_result_bytes = 6u << 10;

/// What a conversation has asked its client to do, until it has been told the results (docs/protocol.md 17). Pure: time is
/// an argument.
class delegations {
public:
  struct terms {
    std::size_t most = 4; ///< calls under way or not told yet; 0 = nothing is delegated
    std::chrono::milliseconds patience = std::chrono::seconds(30); ///< until the client has answered
  };

  explicit delegations(terms under) : terms_(under) {}

  /// Whether one more call could begin: otherwise a turn of the user need not be judged at all.
  bool has_room() const { return calls_.size() + results_.size() < terms_.most; }

  /// Whether the client is at work on just this.
  bool is_under_way(const conversation::tool_call& call) const;

  /// The call has an id. There must be room.
  void begin(conversation::tool_call call, time_point now);

  /// What the function returned. False if no call with this id waits for a result.
  bool resolve(std::string_view id, std::string result, time_point now);

  /// Nobody wants the call any more, and the model is told nothing. False if no such call waits for a result.
  bool cancel(std::string_view id);

  /// The calls whose time is over, which the model is told in words. Returns their ids.
  std::vector<std::string> expire(time_point now);

  /// When `expire` has something to do.
  std::optional<time_point> next_deadline() const;

  /// What is going on when a second of the user's sound is about to be read.
  struct moment {
    bool model_speaks = false; ///< or has not listened for a second since
    bool user_speaks = false;
  };

  /// The next result, with its call, for the model to read now: one at a time, in the order in which they came. Nothing if
  /// there is none, or the moment is not right: in the middle of what the model says it would lose its thread, and while
  /// the user speaks it would interrupt. After `most_polite` it is told all the same, but never while the model speaks.
  std::vector<conversation::text_message> tell(const moment& is, time_point now);

  static constexpr std::chrono::milliseconds most_polite{5000};

private:
  struct open_call {
    conversation::tool_call call;
    time_point until;
  };
  struct told_result {
    conversation::tool_call call;
    std::string result;
    time_point came;
  };

  terms terms_;
  std::vector<open_call> calls_;
  std::deque<told_result> results_; ///< not told yet
};

/// Whether these functions are few enough that each turn of a user can be judged by them.
bool fit_to_judge(const std::vector<conversation::tool>& offered);

/// The call as the model itself would have written it.
std::string words_of(const conversation::tool_call& call);

} // namespace parley::protocol
