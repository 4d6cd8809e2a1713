#include "inference/chat/rendered_text.hpp"

#include "inference/text/utf8.hpp"

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
  text += text::lossy_utf8(theirs);
  if (text.size() > begin) quoted.push_back({begin, text.size()});
}

void rendered_text::attach(medium kind, std::size_t number) {
  auto begin = text.size();
  text += placeholder(kind);
  attachments.push_back({begin, text.size(), kind, number});
}

void rendered_text::add(const rendered_text& other, std::size_t begin, std::size_t end) {
  auto moved = [&, base = text.size()](std::size_t at) { return at - begin + base; };
  for (const auto& q : other.quoted) {
    auto from = std::max(q.begin, begin), to = std::min(q.end, end);
    if (from < to) quoted.push_back({moved(from), moved(to)});
  }
  for (const auto& a : other.attachments)
    if (a.begin >= begin && a.end <= end) attachments.push_back({moved(a.begin), moved(a.end), a.kind, a.number});
  text.append(other.text, begin, end - begin);
}

} // namespace parley::inference::chat
