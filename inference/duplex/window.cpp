#include "inference/duplex/window.hpp"

#include <algorithm>
#include <utility>

namespace parley::inference::duplex {

namespace {

bool blank(const std::string& text) {
  return text.find_first_not_of(" \t\n\v\f\r") == std::string::npos;
}

} // namespace

window::window(tokenizer tokens, window_options options)
    : tokens_(std::move(tokens)), options_(options), marker_(tokens_.encode("\n\nprevious: ")) {}

void window::set_prompt(std::int64_t prefix, std::vector<token_id> suffix_ids, std::int64_t most) {
  prefix_ = prefix;
  preserved_ = prefix + std::ssize(suffix_ids);
  suffix_ids_ = std::move(suffix_ids);
  most_previous_ = std::min<std::int64_t>(options_.previous_max_tokens, most - preserved_ - std::ssize(marker_));
}

void window::begin_unit(std::int64_t cache_length, std::vector<stretch> messages) {
  unit_begin_ = cache_length;
  for (const auto& each : messages) unit_begin_ += each.length;
  messages_ = std::move(messages);
}

void window::end_unit(std::int64_t cache_length, const unit_outcome& outcome) {
  units_.push_back({next_id_++, cache_length - unit_begin_, outcome.is_listen, outcome.ids, outcome.text,
                    std::exchange(messages_, {})});
}

/// A slide while it is being decided. Rows are those of the cache as it was.
struct window::sliding {
  struct stretch {
    std::int64_t begin, rows;
  };
  std::int64_t length;      ///< of the cache
  std::int64_t head;        ///< rows before the messages that had stayed
  std::int64_t next;        ///< where the oldest unit that is left begins, with the messages before it
  std::size_t units;        ///< how many were dropped
  std::deque<stretch> kept; ///< the messages that stay
  bool remembers;           ///< what is inserted has changed
};

window::sliding window::begin_slide(std::int64_t cache_length) const {
  sliding made{cache_length, preserved_ - kept_rows_, preserved_, 0, {}, false};
  auto begin = made.head;
  for (const auto rows : kept_) {
    made.kept.push_back({begin, rows});
    begin += rows;
  }
  return made;
}

std::int64_t window::rows_left(const sliding& made) const {
  const auto head = made.remembers ? prefix_ + std::ssize(previous_ids_) + std::ssize(suffix_ids_) : made.head;
  return head + kept_rows_ + made.length - made.next;
}

std::optional<window_slide> window::slide(std::int64_t cache_length) {
  auto made = begin_slide(cache_length);
  auto too_long = [&] {
    if (options_.mode == window_mode::basic)
      return rows_left(made) > (made.units == 0 ? options_.high_tokens : options_.low_tokens);
    return options_.mode == window_mode::context &&
           std::ssize(units_) - static_cast<std::ptrdiff_t>(made.units) > options_.max_units;
  };
  while (made.units < units_.size() && too_long()) drop_oldest(made);
  return conclude(made);
}

std::optional<window_slide> window::make_room(std::int64_t cache_length, std::int64_t most) {
  if (cache_length <= most) return std::nullopt;
  auto made = begin_slide(cache_length);
  const auto goal = options_.mode == window_mode::basic ? std::min<std::int64_t>(most, options_.low_tokens) : most;
  while (made.units < units_.size() && rows_left(made) > goal) drop_oldest(made);
  while (!made.kept.empty() && rows_left(made) > most) drop_oldest_message(made);
  return conclude(made);
}

/// Drops the oldest unit and the messages before it, except those that stay.
void window::drop_oldest(sliding& made) {
  const auto& gone = units_[made.units++];
  for (const auto& each : gone.messages) {
    if (each.stays) {
      made.kept.push_back({made.next, each.length});
      kept_rows_ += each.length;
    }
    made.next += each.length;
  }
  made.next += gone.length;
  while (kept_rows_ > options_.system_max_tokens) drop_oldest_message(made);
  if (options_.mode == window_mode::context) made.remembers = remember(gone) || made.remembers;
}

void window::drop_oldest_message(sliding& made) {
  kept_rows_ -= made.kept.front().rows;
  made.kept.pop_front();
}

/// Adds what a dropped unit said to what the prompt remembers; false if nothing changes.
bool window::remember(const unit& gone) {
  if (gone.is_listen || most_previous_ <= 0) return false;
  std::vector<token_id> ids;
  std::copy_if(gone.ids.begin(), gone.ids.end(), std::back_inserter(ids),
               [&](token_id id) { return !tokens_.is_special(id); });
  const auto text = blank(gone.text) ? std::string() : gone.text;
  if (ids.empty() && text.empty()) return false;
  if (previous_ids_.empty()) previous_ids_ = marker_;
  previous_ids_.insert(previous_ids_.end(), ids.begin(), ids.end());
  previous_text_ += text;
  const auto marker = std::ssize(marker_);
  if (const auto too_many = std::ssize(previous_ids_) - marker - most_previous_; too_many > 0) {
    previous_ids_.erase(previous_ids_.begin() + marker, previous_ids_.begin() + marker + too_many);
    previous_text_ = tokens_.decode(std::span(previous_ids_).subspan(marker_.size()), true);
  }
  return true;
}

std::optional<window_slide> window::conclude(const sliding& made) {
  if (made.units == 0 && made.kept.size() == kept_.size()) return std::nullopt;
  window_slide out{made.head, {}, {}};
  if (made.remembers) {
    out.keep = prefix_;
    out.insert = previous_ids_;
    out.insert.insert(out.insert.end(), suffix_ids_.begin(), suffix_ids_.end());
  }
  auto to = out.keep + std::ssize(out.insert);
  preserved_ = to + kept_rows_;
  auto add = [&](std::int64_t from, std::int64_t rows) {
    if (rows == 0) return;
    if (!out.moves.empty() && out.moves.back().from + out.moves.back().rows == from)
      out.moves.back().rows += rows;
    else
      out.moves.push_back({from, to, rows});
    to += rows;
  };
  kept_.clear();
  for (const auto& each : made.kept) {
    add(each.begin, each.rows);
    kept_.push_back(each.rows);
  }
  add(made.next, made.length - made.next);
  if (out.insert.empty() && !out.moves.empty() && out.moves.front().from == out.moves.front().to) { // stays in place
    out.keep += out.moves.front().rows;
    out.moves.erase(out.moves.begin());
  }
  units_.erase(units_.begin(), units_.begin() + static_cast<std::ptrdiff_t>(made.units));
  ++events_;
  dropped_tokens_ += made.length - out.length();
  return out;
}

} // namespace parley::inference::duplex
