#include "inference/chat/rendered_text.hpp"

#include "base/utf8.hpp"

#include <algorithm>

namespace parley::inference::chat {

std::string_view rendered_text::placeholder(medium kind) {
  return kind == medium::image ? "<image>./</image>" : "<audio>./</audio>";
}

void rendered_text::add(std::string_view ours) {
  text += ours;
}

void rendered_text::quote(std::string_view theirs) {
  auto begin = text.size();
  text += base::utf8::lossy(theirs);
  if (text.size() > begin) quoted.push_back({begin, text.size()});
}

void rendered_text::attach(medium kind, std::size_t number) {
  auto begin = text.size();
  text += placeholder(kind);
  attachments.push_back({begin, text.size(), kind, number});
}

void rendered_text::add(const rendered_text& other, std::size_t begin, std::size_t end) {
  auto moved = [&, base = text.size()](std::size_t at) { return at - begin + base; };
  // Both lists are sorted, so what lies before and after the range can be skipped.
  const auto ends_before = [begin](const auto& part) { return part.end <= begin; };
  for (auto q = std::ranges::partition_point(other.quoted, ends_before); q != other.quoted.end() && q->begin < end; ++q)
    quoted.push_back({moved(std::max(q->begin, begin)), moved(std::min(q->end, end))});
  const auto begins_before = [begin](const auto& part) { return part.begin < begin; };
  for (auto a = std::ranges::partition_point(other.attachments, begins_before);
       a != other.attachments.end() && a->end <= end; ++a)
    attachments.push_back({moved(a->begin), moved(a->end), a->kind, a->number});
  text.append(other.text, begin, end - begin);
}

} // namespace parley::inference::chat
