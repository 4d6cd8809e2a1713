#include "inference/chat/call_scanner.hpp"

namespace parley::inference::chat {

namespace {

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/// Goes through the beginning of a text.
struct cursor {
  std::string_view rest;
  bool more = false; ///< the text ended before it could be told whether it fits

  void skip_space() {
    while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
  }

  bool take(std::string_view token) {
    skip_space();
    if (rest.starts_with(token)) {
      rest.remove_prefix(token.size());
      return true;
    }
    more = token.starts_with(rest);
    return false;
  }

  /// Up to the quote that ends a string without escapes.
  bool take_name(std::string& into) {
    const auto end = rest.find_first_of("\"\\");
    more = end == std::string_view::npos;
    if (more || rest[end] != '"') return false;
    into = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return !into.empty();
  }
};

} // namespace

std::string call_scanner::scan(std::string_view body) {
  if (at_ == state::opening && !read_opening(body)) return {};
  const auto before = arguments_.size();
  for (; at_ == state::arguments && scanned_ < body.size(); ++scanned_) take(body[scanned_]);
  return arguments_.substr(before);
}

bool call_scanner::read_opening(std::string_view body) {
  cursor at{body};
  std::string name;
  const bool fits = at.take("{") && at.take("\"name\"") && at.take(":") && at.take("\"") && at.take_name(name) &&
                    at.take(",") && at.take("\"arguments\"") && at.take(":");
  at.skip_space();
  if (!fits) {
    if (!at.more) at_ = state::lost;
    return false;
  }
  if (at.rest.empty()) return false;
  if (at.rest.front() != '{') {
    at_ = state::lost;
    return false;
  }
  name_ = std::move(name);
  scanned_ = body.size() - at.rest.size();
  at_ = state::arguments;
  return true;
}

void call_scanner::take(char c) {
  if (in_string_) {
    arguments_ += c;
    if (escaped_)
      escaped_ = false;
    else if (c == '\\')
      escaped_ = true;
    else if (c == '"')
      in_string_ = false;
    return;
  }
  if (is_space(c)) return;
  arguments_ += c;
  if (c == '"') in_string_ = true;
  if (c == '{' || c == '[') ++depth_;
  if ((c == '}' || c == ']') && --depth_ == 0) at_ = state::over;
}

} // namespace parley::inference::chat
