#pragma once

#include "inference/quirks.hpp"
#include "inference/text/tokenizer.hpp"

#include <optional>
#include <string>
#include <vector>

// The listen-or-speak decisions of one duplex session (docs/model/thinker.md 5.3), without a model: the engine draws
// and feeds tokens for many sessions at once and tells each decoder the results.
namespace parley::inference::duplex {

/// The tokens that control a unit.
struct control_tokens {
  token_id unit_begin, unit_end;
  token_id listen, speak, chunk_eos, chunk_tts_eos, turn_eos, tts_bos;

  static control_tokens of(const tokenizer& tokens);
};

/// What a decoder needs next.
enum class wants {
  nothing, ///< no unit is running
  draw,    ///< a token sampled from the newest logits: reply with `sampled`
  feed,    ///< `token()` fed to the model: reply with `fed`
};

/// How a unit ended.
struct unit_outcome {
  bool is_listen = false;
  bool end_of_turn = false;
  std::string text;
  std::vector<token_id> ids;          ///< tokens of the reply: the text, <|turn_eos|>, <|tts_bos|> …
  std::optional<token_id> terminator; ///< still to be fed before `</unit>`; none in implicit mode
  std::vector<token_id> appended;     ///< everything this unit added to the sequence, without `</unit>`
  int sampled = 0;                    ///< how many of `appended` were sampled; the others were forced
  bool cut = false;                   ///< `cut` stopped the unit
};

/// The limits of a session's units (docs/model/thinker.md 5.3).
struct unit_decoder_options {
  int force_listen_count = 0; ///< this many units at the start must listen
  int max_new_tokens = 20;    ///< per unit, counting the terminator
  bool explicit_mode = true;  ///< false: terminators are not fed and there is no token budget (ls_mode "implicit")
  int max_characters = 28;    ///< code points in a unit's text
};

/// Makes the decisions of a session unit by unit: call `begin`, do what `next` asks for until it returns `nothing`,
/// then read `outcome`. A copy continues in the same way, so a failed unit can be undone. Not thread-safe.
class unit_decoder {
public:
  unit_decoder(tokenizer tokens, const quirks& how, unit_decoder_options options);

  /// Starts a unit with fresh logits. `force_listen` first ends an open turn with <|turn_eos|>.
  void begin(bool force_listen);

  wants next() const { return next_; }

  /// The token to feed while `next()` is `feed`.
  token_id token() const { return token_; }

  /// Takes the token that was sampled, or a recorded one in its place.
  void sampled(token_id token);

  /// Call when `token()` has been fed. Returns true if the hidden state of that row belongs to the reply
  /// (`unit_outcome::ids`).
  bool fed();

  /// Stops the running unit at once: feeds <|turn_eos|> if a turn is open, then the unit answers `listen`.
  void cut();

  /// Stops a finished speaking unit whose answer is still being spoken: withdraws its terminator, which the model has
  /// not seen, feeds <|turn_eos|> if a turn is open, then the unit answers `listen`.
  void recall();

  /// The finished unit; valid once `next()` is `nothing`, until the next `begin`.
  const unit_outcome& outcome() const { return outcome_; }

  bool turn_ended() const { return turn_ended_; }
  int max_new_tokens() const { return options_.max_new_tokens; }
  void set_max_new_tokens(int count) { options_.max_new_tokens = count; }

private:
  void step();
  void choose(token_id token);
  void stop(token_id terminator);
  void finish();
  void break_off();
  bool is_terminator(token_id token) const;

  tokenizer tokens_;
  control_tokens control_;
  quirks how_;
  unit_decoder_options options_;

  // units so far
  int units_ = 0;
  bool turn_ended_ = true;
  bool listen_next_ = false;

  // state of the running unit
  wants next_ = wants::nothing;
  token_id token_ = 0;
  int index_ = 0; ///< the index j of docs/model/thinker.md 5.3
  bool forced_ = false;
  bool closing_turn_ = false; ///< the <|turn_eos|> being fed was forced, not sampled
  bool turn_was_open_ = false;
  bool ended_before_choice_ = true;
  bool saw_turn_end_ = false;
  bool drew_terminator_ = false;
  unit_outcome outcome_;
};

} // namespace parley::inference::duplex
