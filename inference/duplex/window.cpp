#include "inference/duplex/window.hpp"

#include <algorithm>

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

void window::begin_unit(std::int64_t cache_length) {
  unit_begin_ = cache_length;
}

void window::end_unit(std::int64_t cache_length, const unit_outcome& outcome) {
  units_.push_back({next_id_++, cache_length - unit_begin_, outcome.is_listen, outcome.ids, outcome.text});
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
  while (too_long()) {
    auto step = options_.mode == window_mode::basic ? drop_oldest() : drop_oldest_with_context();
    length += std::ssize(step.insert) - step.drop;
    steps.push_back(std::move(step));
  }
  if (!steps.empty()) {
    ++events_;
    dropped_tokens_ += cache_length - length;
  }
  return steps;
}

window_step window::drop_oldest() {
  window_step step{preserved_, units_.front().length, {}};
  units_.erase(units_.begin());
  return step;
}

window_step window::drop_oldest_with_context() {
  auto gone = std::move(units_.front());
  units_.erase(units_.begin());
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
  if (previous_ids_.empty() && old_previous == 0) return {preserved_, gone.length, {}};
  window_step step{prefix_, preserved_ - prefix_ + gone.length, previous_ids_};
  step.insert.insert(step.insert.end(), suffix_ids_.begin(), suffix_ids_.end());
  preserved_ = prefix_ + std::ssize(step.insert);
  return step;
}

} // namespace parley::inference::duplex
