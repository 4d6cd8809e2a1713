#pragma once

#include "inference/decoding/unit_decoder.hpp"
#include "inference/llm/row_move.hpp"
#include "inference/text/tokenizer.hpp"
#include "inference/vocabulary.hpp"

#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace parley::inference::duplex {

/// When a window slides (docs/model/thinker.md 5.6). Tokens are rows of the KV cache.
struct window_options {
  window_mode mode = window_mode::off;
  int high_tokens = 4000;        ///< basic: slides above this number of tokens ...
  int low_tokens = 3500;         ///< ... down to this
  int max_units = 24;            ///< context: units kept
  int previous_max_tokens = 500; ///< context: how many tokens of the dropped units' speech stay in the prompt
  int system_max_tokens = 1000;  ///< how many tokens of system messages stay when the units after them are dropped
};

/// How a KV cache changes when its window slides: rows [0, keep) stay, `insert` is fed behind them, and what is left of
/// the other rows follows (docs/model/thinker.md 5.6). Whatever is dropped, each row that is left moves once.
struct window_slide {
  std::int64_t keep = 0;
  std::vector<token_id> insert;
  std::vector<llm::row_move> moves; ///< of the cache as it was, ascending; the first goes to keep + insert.size()

  std::int64_t length() const { ///< of the cache afterwards
    return moves.empty() ? keep + std::ssize(insert) : moves.back().to + moves.back().rows;
  }
};

/// Which units a session's KV cache holds, and what to drop when it grows too long. Bookkeeping only: the caller
/// carries the slides out. Copies are windows of their own.
class window {
public:
  /// Rows of messages that came before a unit (docs/model/thinker.md 5.7). They are dropped with it, or stay behind the
  /// prompt.
  struct stretch {
    std::int64_t length = 0;
    bool stays = false;
  };

  struct unit {
    int id = 0;
    std::int64_t length = 0; ///< rows, from `<unit>` on
    bool is_listen = false;
    std::vector<token_id> ids;
    std::string text;
    std::vector<stretch> messages = {}; ///< before it
  };

  window(tokenizer tokens, window_options options);

  /// Call after the prompt: `prefix` rows, then the rows of `suffix_ids`, which are fed again when context is inserted.
  /// `most`: how many rows the prompt may have together with what the dropped units said.
  void set_prompt(std::int64_t prefix, std::vector<token_id> suffix_ids,
                  std::int64_t most = std::numeric_limits<std::int64_t>::max());

  /// Call before `<unit>`, and before the messages that precede it. `cache_length` is in rows, here and below.
  void begin_unit(std::int64_t cache_length, std::vector<stretch> messages = {});

  /// After `</unit>`.
  void end_unit(std::int64_t cache_length, const unit_outcome& outcome);

  /// The change to make now, if one is due. The window assumes that the caller makes it, here and below.
  std::optional<window_slide> slide(std::int64_t cache_length);

  /// The change that leaves at most `most` rows, or as few as there can be: drops units, and then the messages of the
  /// system. None if that many are left already. Where windows slide by tokens, down to their low mark at once.
  std::optional<window_slide> make_room(std::int64_t cache_length, std::int64_t most);

  const window_options& options() const { return options_; }
  std::int64_t preserved() const { return preserved_; } ///< rows at the front that no slide drops
  const std::vector<unit>& units() const { return units_; }
  int events() const { return events_; } ///< slides
  std::int64_t dropped_tokens() const { return dropped_tokens_; }
  const std::vector<token_id>& previous_ids() const { return previous_ids_; }
  const std::string& previous_text() const { return previous_text_; }

private:
  struct sliding;
  sliding begin_slide(std::int64_t cache_length) const;
  std::int64_t rows_left(const sliding& made) const;
  void drop_oldest(sliding& made);
  void drop_oldest_message(sliding& made);
  bool remember(const unit& gone);
  std::optional<window_slide> conclude(const sliding& made);

  tokenizer tokens_;
  window_options options_;
  std::vector<token_id> marker_;
  std::int64_t prefix_ = 0;
  std::int64_t most_previous_ = 0; ///< ids behind the marker
  std::vector<token_id> suffix_ids_;
  std::int64_t preserved_ = 0;
  std::int64_t unit_begin_ = 0;
  int next_id_ = 0;
  std::vector<unit> units_;
  std::vector<stretch> messages_; ///< of the unit that has begun
  std::deque<std::int64_t> kept_; ///< rows of the messages behind the prompt that stayed, oldest first
  std::int64_t kept_rows_ = 0;
  std::vector<token_id> previous_ids_;
  std::string previous_text_;
  int events_ = 0;
  std::int64_t dropped_tokens_ = 0;
};

} // namespace parley::inference::duplex
