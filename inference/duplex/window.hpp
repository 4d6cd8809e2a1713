#pragma once

#include "inference/duplex/unit_decoder.hpp"
#include "inference/text/tokenizer.hpp"
#include "inference/unit.hpp"

#include <cstdint>
#include <deque>
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

/// One change of a KV cache: rows [0, keep) stay, the next `drop` rows are removed, `insert` is fed in their place, and
/// the rows after them move up with their keys rotated (docs/model/thinker.md 5.6).
struct window_step {
  std::int64_t keep = 0;
  std::int64_t drop = 0;
  std::vector<token_id> insert;
};

/// Which units a session's KV cache holds, and what to drop when it grows too long. Bookkeeping only: the caller
/// carries the steps out.
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
  void set_prompt(std::int64_t prefix, std::vector<token_id> suffix_ids);

  /// Call before `<unit>`, and before the messages that precede it. `cache_length` is in rows, here and below.
  void begin_unit(std::int64_t cache_length, std::vector<stretch> messages = {});

  /// After `</unit>`.
  void end_unit(std::int64_t cache_length, const unit_outcome& outcome);

  /// The changes to make now, in order. The window assumes that the caller makes them.
  std::vector<window_step> slide(std::int64_t cache_length);

  const window_options& options() const { return options_; }
  std::int64_t first_changed() const { return prefix_; } ///< the first row that a slide may write to
  std::int64_t preserved() const { return preserved_; }  ///< rows at the front that no slide drops
  const std::vector<unit>& units() const { return units_; }
  int events() const { return events_; } ///< calls of `slide` that dropped something
  std::int64_t dropped_tokens() const { return dropped_tokens_; }
  const std::vector<token_id>& previous_ids() const { return previous_ids_; }
  const std::string& previous_text() const { return previous_text_; }

private:
  std::vector<window_step> drop_oldest();
  void keep_newest_messages(std::vector<window_step>& steps);
  void remember(const unit& gone, std::vector<window_step>& steps);

  tokenizer tokens_;
  window_options options_;
  std::vector<token_id> marker_;
  std::int64_t prefix_ = 0;
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
