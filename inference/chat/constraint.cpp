#include "inference/chat/constraint.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <stdexcept>
#include <utility>

namespace parley::inference::chat {
namespace {

constexpr auto impossible = -std::numeric_limits<float>::infinity();

/// With that many tokens left beyond the shortest answer, each candidate is tested for leaving enough of them.
constexpr std::int64_t watched = 256;

} // namespace

constraint::constraint(std::shared_ptr<const grammar::json_grammar> rules, tokenizer tokens)
    : grammar_(std::move(rules)), tokens_(std::move(tokens)), state_(*grammar_), after_(state_) {}

/// Every byte has a token, so that a text never needs more tokens than bytes.
bool constraint::fits(token_id token, std::int64_t left) const {
  const auto bytes = tokens_.bytes(token);
  if (bytes.empty() || tokens_.is_special(token)) return false;
  after_ = state_;
  if (!after_.feed(bytes)) return false;
  return left > static_cast<std::int64_t>(grammar_->shortest_bytes()) + watched ||
         static_cast<std::int64_t>(after_.completion_bytes()) < left;
}

/// Whether even the shortest answer may need more tokens than are left.
bool constraint::is_short_of_room(std::int64_t left) const {
  return left <= static_cast<std::int64_t>(grammar_->shortest_bytes()) + watched &&
         static_cast<std::int64_t>(state_.completion_bytes()) > left;
}

void constraint::restrict(std::span<float> logits, std::int64_t left) {
  if (is_short_of_room(left)) return end_soon(logits);
  auto floor = impossible;
  if (logits.size() > tested) {
    heap_.assign(logits.begin(), logits.end());
    std::nth_element(heap_.begin(), heap_.begin() + (tested - 1), heap_.end(), std::greater<>());
    floor = heap_[tested - 1];
  }
  bool any = false;
  for (auto i = std::size_t{0}; i < logits.size() && !any; ++i)
    any = logits[i] >= floor && logits[i] != impossible && fits(static_cast<token_id>(i), left);
  if (!any) return leave_only_fitting(logits, left);
  for (auto i = std::size_t{0}; i < logits.size(); ++i)
    if (logits[i] < floor || !fits(static_cast<token_id>(i), left)) logits[i] = impossible;
}

bool constraint::restrict(llm::short_row& row, std::int64_t left) const {
  if (is_short_of_room(left)) return false;
  std::vector<bool> fitting(row.ids.size());
  bool any = false;
  for (auto i = std::size_t{0}; i < row.ids.size(); ++i) {
    fitting[i] = row.logits[i] != impossible && row.logits[i] >= row.others && fits(row.ids[i], left);
    any = any || fitting[i];
  }
  if (!any) return false;
  for (auto i = std::size_t{0}; i < row.ids.size(); ++i)
    if (!fitting[i]) row.logits[i] = impossible;
  row.others = impossible;
  return true;
}

/// Goes through the whole vocabulary, and tests the likeliest tokens that may come at all.
void constraint::leave_only_fitting(std::span<float> logits, std::int64_t left) {
  std::array<bool, 256> begins{};
  for (auto b = 0; b < 256; ++b) {
    after_ = state_;
    const auto byte = static_cast<char>(b);
    begins[static_cast<std::size_t>(b)] = after_.feed({&byte, 1});
  }
  heap_.clear();
  for (auto i = std::size_t{0}; i < logits.size(); ++i) {
    const auto bytes = tokens_.bytes(static_cast<token_id>(i));
    if (bytes.empty() || !begins[static_cast<unsigned char>(bytes.front())]) logits[i] = impossible;
    if (logits[i] != impossible) heap_.push_back(logits[i]);
  }
  auto floor = impossible;
  if (heap_.size() > most_tested) {
    std::nth_element(heap_.begin(), heap_.begin() + (most_tested - 1), heap_.end(), std::greater<>());
    floor = heap_[most_tested - 1];
  }
  bool any = false;
  for (auto i = std::size_t{0}; i < logits.size(); ++i) {
    if (logits[i] == impossible) continue;
    if (logits[i] < floor || !fits(static_cast<token_id>(i), left))
      logits[i] = impossible;
    else
      any = true;
  }
  if (!any) end_soon(logits);
}

/// Leaves one token, on the shortest way to the answer's end.
void constraint::end_soon(std::span<float> logits) const {
  const auto last = towards_the_end();
  if (last < 0 || static_cast<std::size_t>(last) >= logits.size())
    throw std::runtime_error("no token of the vocabulary fits the answer's grammar");
  std::ranges::fill(logits, impossible);
  logits[static_cast<std::size_t>(last)] = 0;
}

/// The longest token that the shortest completion begins with; -1 if there is none.
token_id constraint::towards_the_end() const {
  const auto rest = state_.completion();
  auto best = token_id{-1};
  auto size = std::size_t{0};
  for (auto id = token_id{0}; id < tokens_.size(); ++id) {
    const auto bytes = tokens_.bytes(id);
    if (bytes.size() > size && !tokens_.is_special(id) && rest.starts_with(bytes)) {
      best = id;
      size = bytes.size();
    }
  }
  return best;
}

} // namespace parley::inference::chat
