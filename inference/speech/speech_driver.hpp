#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// Decides which speech tokens are passed to token2wav in which call (docs/model/talker.md 5). Pure bookkeeping, without
// sound. 25 tokens are a second.
namespace parley::inference::speech {

inline constexpr std::int64_t silence_speech_token = 4218; ///< three of these precede a turn's first token
inline constexpr std::size_t window_tokens = 28;           ///< tokens of a full call
inline constexpr std::size_t window_step = 25;             ///< those of them that become sound; the rest is lookahead
inline constexpr std::size_t window_lookahead = 3;
inline constexpr std::size_t smallest_window = 8; ///< minimum for a call of a unit that is not full

/// One call to be made.
struct window_call {
  std::vector<std::int64_t> tokens;
  bool last = false; ///< it ends the turn, so all tokens become sound
};

/// A duplex turn: everything that a unit has produced becomes sound at once (docs/model/talker.md 5, B).
class duplex_windows {
public:
  /// `eager`: like the class that the reference serves. Otherwise like the older one, which waits for full windows
  /// after a turn's first unit.
  explicit duplex_windows(bool eager = true) : eager_(eager) { reset(); }

  /// The unit's tokens; `last` ends the turn. Returns the calls to make, in order. Too few tokens wait for the next
  /// unit.
  std::vector<window_call> push(std::span<const std::int64_t> tokens, bool last);

  /// Drops waiting tokens: the next ones begin a turn.
  void reset();

  std::span<const std::int64_t> waiting() const { return buffer_; }

private:
  bool eager_, turn_begins_ = true;
  std::vector<std::int64_t> buffer_;
};

/// A streamed chat answer: batches of 25 from the TTS model become windows (docs/model/talker.md 4.1 and 5, A).
class turn_windows {
public:
  turn_windows() : buffer_(window_lookahead, silence_speech_token) {}

  /// Returns a window whenever there are enough tokens.
  std::optional<window_call> push(std::int64_t token);

  /// The rest of the answer; nothing if it had no tokens.
  std::optional<window_call> finish();

private:
  std::vector<std::int64_t> batch_, buffer_;
  bool empty_ = true;
};

/// All windows of a whole chat answer (docs/model/talker.md 5, C). The first window marked last ends the answer. (If (n
/// - 28) % 25 == 0, the reference sends its last three tokens again, and fails.)
std::vector<window_call> whole_windows(std::span<const std::int64_t> tokens);

} // namespace parley::inference::speech
