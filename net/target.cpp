#include "net/target.hpp"

#include <charconv>

namespace parley::net {

target split_target(std::string_view text) {
  text = text.substr(0, text.find('#'));
  const auto mark = text.find('?');
  if (mark == std::string_view::npos) return {text, {}};
  return {text.substr(0, mark), text.substr(mark + 1)};
}

std::optional<std::string> tidy_target(std::string_view text) {
  const auto path = text.substr(0, text.find_first_of("?#"));
  if (!path.starts_with('/')) return std::nullopt;
  std::string tidied;
  for (const char c : path)
    if (c != '/' || !tidied.ends_with('/')) tidied.push_back(c);
  if (tidied.size() > 1 && tidied.ends_with('/')) tidied.pop_back();
  if (tidied.size() == path.size()) return std::nullopt;
  return tidied.append(text.substr(path.size()));
}

std::string percent_decode(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  while (!text.empty()) {
    unsigned char byte = 0;
    if (text[0] == '%' && text.size() >= 3 &&
        std::from_chars(text.data() + 1, text.data() + 3, byte, 16).ptr == text.data() + 3) {
      decoded.push_back(static_cast<char>(byte));
      text.remove_prefix(3);
    } else {
      decoded.push_back(text[0]);
      text.remove_prefix(1);
    }
  }
  return decoded;
}

std::optional<std::string> query_value(std::string_view query, std::string_view key) {
  std::optional<std::string> found;
  while (!query.empty()) {
    const auto end = query.find('&');
    const std::string_view item = query.substr(0, end);
    query.remove_prefix(end == std::string_view::npos ? query.size() : end + 1);
    const auto equals = item.find('=');
    if (percent_decode(item.substr(0, equals)) != key) continue;
    found = equals == std::string_view::npos ? std::string() : percent_decode(item.substr(equals + 1));
  }
  return found;
}

} // namespace parley::net
