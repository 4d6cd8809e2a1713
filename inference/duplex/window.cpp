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

void window::set_prompt(std::int64_t prefix, std::vector<token_id> suffix_ids) {
  prefix_ = prefix;
  preserved_ = prefix + std::ssize(suffix_ids);
  suffix_ids_ = std::move(suffix_ids);
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

std::vector<window_step> window::slide(std::int64_t cache_length) {
  std::vector<window_step> steps;
  auto length = cache_length;
  auto too_long = [&] {
    if (units_.empty()) return false;
    if (options_.mode == window_mode::basic)
      return length > (steps.empty() ? options_.high_tokens : options_.low_tokens);
    return options_.mode == window_mode::context && std::ssize(units_) > options_.max_units;
  };
  while (too_long())
    for (auto& step : drop_oldest()) {
      length += std::ssize(step.insert) - step.drop;
      steps.push_back(std::move(step));
    }
  if (!steps.empty()) {
    ++events_;
    dropped_tokens_ += cache_length - length;
  }
  return steps;
}

/// Drops the oldest unit and the messages before it, except those that stay.
std::vector<window_step> window::drop_oldest() {
  std::vector<window_step> steps;
  const auto gone = std::move(units_.front());
  units_.erase(units_.begin());
  auto drop = std::int64_t{0};
  for (const auto& each : gone.messages) {
    if (!each.stays) {
      drop += each.length;
      continue;
    }
    if (drop > 0) steps.push_back({preserved_, std::exchange(drop, 0), {}});
    preserved_ += each.length;
    kept_.push_back(each.length);
    kept_rows_ += each.length;
  }
  steps.push_back({preserved_, drop + gone.length, {}});
  keep_newest_messages(steps);
  if (options_.mode == window_mode::context) remember(gone, steps);
  return steps;
}

void window::keep_newest_messages(std::vector<window_step>& steps) {
  while (kept_rows_ > options_.system_max_tokens) {
    steps.push_back({preserved_ - kept_rows_, kept_.front(), {}});
    preserved_ -= kept_.front();
    kept_rows_ -= kept_.front();
    kept_.pop_front();
  }
}

/// Puts what a dropped unit said into the prompt.
void window::remember(const unit& gone, std::vector<window_step>& steps) {
  std::string text;
  std::vector<token_id> ids;
  if (!gone.is_listen) {
    if (!blank(gone.text)) text = gone.text;
    std::copy_if(gone.ids.begin(), gone.ids.end(), std::back_inserter(ids),
                 [&](token_id id) { return !tokens_.is_special(id); });
  }
  auto old_previous = std::ssize(previous_ids_);
  if (!ids.empty() || !text.empty()) {
    if (previous_ids_.empty()) previous_ids_ = marker_;
    previous_ids_.insert(previous_ids_.end(), ids.begin(), ids.end());
    previous_text_ += text;
    auto marker = std::ssize(marker_);
    auto too_many = std::ssize(previous_ids_) - marker - options_.previous_max_tokens;
    if (too_many > 0) {
      previous_ids_.erase(previous_ids_.begin() + marker, previous_ids_.begin() + marker + too_many);
      previous_text_ = tokens_.decode(std::span(previous_ids_).subspan(marker_.size()), true);
    }
  }
  if (previous_ids_.empty() && old_previous == 0) return;
  window_step told{prefix_, preserved_ - kept_rows_ - prefix_, previous_ids_};
  if (kept_.empty() && steps.size() == 1) { // what is dropped follows at once
    told.drop += steps.front().drop;
    steps.clear();
  }
  told.insert.insert(told.insert.end(), suffix_ids_.begin(), suffix_ids_.end());
  preserved_ = prefix_ + std::ssize(told.insert) + kept_rows_;
  steps.push_back(std::move(told));
}

} // namespace parley::inference::duplex
