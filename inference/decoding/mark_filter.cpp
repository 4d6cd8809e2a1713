#include "inference/decoding/mark_filter.hpp"

#include "inference/decoding/partial_match.hpp"

#include <algorithm>
#include <utility>

namespace parley::inference::chat {
namespace {

/// Takes out the marks, and those that what is left at either side of one makes.
void take_out(std::string& text) {
  for (auto at = text.find('<'); at != std::string::npos;) {
    const auto rest = std::string_view(text).substr(at);
    const auto mark = std::ranges::find_if(tool_marks, [&](std::string_view each) { return rest.starts_with(each); });
    if (mark == tool_marks.end()) {
      at = text.find('<', at + 1);
      continue;
    }
    text.erase(at, mark->size());
    const auto longest = std::ranges::max(tool_marks, {}, &std::string_view::size).size();
    at = text.find('<', at - std::min(at, longest));
  }
}

/// How many bytes at the end may belong to a mark, also to one that is left when another one is taken out of it.
std::size_t kept_back(std::string_view text) {
  constexpr auto most = std::size_t{64};
  auto kept = std::size_t{0};
  for (auto more = std::size_t{1}; more > 0 && kept < most; kept += more) {
    more = 0;
    for (const auto mark : tool_marks) more = std::max(more, partial_match(text.substr(0, text.size() - kept), mark));
  }
  return kept;
}

} // namespace

std::string mark_filter::push(std::string_view text) {
  waiting_ += text;
  take_out(waiting_);
  auto certain = waiting_.substr(0, waiting_.size() - kept_back(waiting_));
  waiting_.erase(0, certain.size());
  return certain;
}

std::string mark_filter::finish() {
  return std::exchange(waiting_, {});
}

std::string without_marks(std::string_view text) {
  mark_filter filter;
  auto out = filter.push(text);
  return out + filter.finish();
}

} // namespace parley::inference::chat
