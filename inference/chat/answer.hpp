#pragma once

#include "inference/chat/call_reader.hpp"
#include "inference/chat/constraint.hpp"
#include "inference/chat/stop_matcher.hpp"
#include "inference/decoding/answer_decoder.hpp"
#include "inference/decoding/mark_filter.hpp"
#include "inference/llm/sampling.hpp"
#include "inference/quirks.hpp"
#include "inference/random.hpp"
#include "inference/text/tokenizer.hpp"
#include "inference/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace parley::inference::chat {

/// The answer to one turn, from rows of logits to what a client is told: its tokens, text, calls and scores, where it stops,
/// and the grammar that it obeys. Of a turn that is replayed, the tokens are those that were drawn before, and what was told
/// is not told again. Without a model; for one turn, not thread-safe.
class answer {
public:
  struct setting {
    tokenizer text;
    const answer_ids& ids; ///< must outlive the answer
    quirks how;
  };

  /// How a turn's answer begins.
  struct opening {
    bool undecided = false; ///< its first token is to decide if it is a call or, after <|tts_bos|>, speech
    std::shared_ptr<const grammar::json_grammar>
        grammar; ///< of its calls or of all of it; null without tools and schema
  };

  answer(std::shared_ptr<const submit_turn> turn, setting with, opening how);

  /// It begins as speech at once: no call and no grammar can come first.
  bool begins_as_speech() const;

  /// It is spoken from here on: what cannot be said is not drawn any more.
  void speak();

  /// What a draw needs.
  struct drawing {
    random_source& chance; ///< of the session, for a turn without a seed
    llm::sampling_scratch& scratch;
    std::int64_t room; ///< tokens that the context has room for
  };

  /// Draws the next token from a row of logits, which is overwritten, or from a short one: none = the whole row is needed.
  token_id draw(std::span<float> logits, const drawing& with);
  std::optional<token_id> draw_listed(llm::short_row logits, const drawing& with);

  /// What came of a token.
  struct news {
    bool begins_speech = false;                          ///< it was the mark of speech, and is none of the answer
    std::string text;                                    ///< to tell now; UTF-8
    std::vector<parley::conversation::call_piece> calls; ///< to tell now, after the text
    bool over = false;                                   ///< the answer is: see `reason`
  };

  /// Takes the token that was drawn. `full`: the context has no room for another one.
  news take(token_id token, bool full);

  /// Why it is over, once it is.
  finish_reason reason() const { return reason_; }

  /// A terminator, a stop or the grammar has ended it, not its limit.
  bool complete() const { return decoder_.complete(); }

  const std::vector<token_id>& tokens() const { return decoder_.tokens(); }

  /// How many of them will certainly be told.
  std::size_t certain() const;

  /// All tokens that were drawn, the mark of speech and the end included.
  const std::vector<token_id>& drawn() const { return drawn_; }

  /// Those, and the scores, that were not told yet: they count as told from now on.
  std::vector<std::int64_t> take_drawn();
  std::vector<token_score> take_scores();

  /// The whole text, and all calls.
  std::string& text() { return text_; }
  std::vector<parley::conversation::tool_call> take_calls();

private:
  template<class Token, class Row>
  Token draw_from(Row logits, const drawing& with);
  bool must_obey() const { return turn_->tool_required || !turn_->answer_schema.empty(); }
  bool has_begun_json() const;
  std::span<const token_id> banned_now() const;
  void ban_marks();
  void constrain();
  void follow_constraint(token_id token);
  std::string read_calls(std::string text, bool over);
  void keep_score();
  std::vector<parley::conversation::call_piece> untold_calls();

  /// What has been told, or was before the turn was replayed.
  struct told {
    std::size_t drawn = 0;             ///< tokens
    std::size_t scores = 0, calls = 0; ///< of tokens, and pieces, that come again
    std::size_t bytes = 0;             ///< of text that comes again
  };

  const std::shared_ptr<const submit_turn> turn_;
  const setting with_;
  const std::shared_ptr<const grammar::json_grammar> grammar_;
  llm::chat_sampling sampling_;
  std::optional<random_stream> chance_; ///< its own, if the turn has a seed
  answer_decoder decoder_;
  std::optional<call_reader> calls_;     ///< if it may call functions
  mark_filter marks_;                    ///< of what is none of a call
  std::optional<stop_matcher> stop_;     ///< if it may have to stop early
  std::optional<constraint> constraint_; ///< while it must obey the grammar
  bool undecided_;
  bool speaks_ = false;
  std::string text_;
  std::vector<token_id> drawn_;
  std::vector<float> row_;                         ///< the newest logits, if tokens are scored
  std::vector<std::optional<token_score>> scores_; ///< of each token; none = it is none of the text
  std::size_t scores_passed_ = 0;                  ///< how many of them were told, or are not to be told
  std::vector<token_id> unspeakable_;              ///< banned while it is spoken
  std::vector<token_id> marks_out_of_calls_;       ///< banned except in a call
  told told_;
  finish_reason reason_ = finish_reason::turn_end;
};

} // namespace parley::inference::chat
