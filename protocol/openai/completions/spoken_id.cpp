#include "protocol/openai/completions/spoken_id.hpp"

#include "base/utf8.hpp"
#include "protocol/media/base64.hpp"

#include <algorithm>
#include <span>

namespace parley::protocol {

std::string spoken_id(std::string_view name, std::string_view words) {
  std::string out = "audio_";
  out.append(name) += '.';
  const auto begin = static_cast<std::ptrdiff_t>(out.size());
  base64::append(std::as_bytes(std::span(words)), out);
  std::replace(out.begin() + begin, out.end(), '+', '-');
  std::replace(out.begin() + begin, out.end(), '/', '_');
  out.erase(std::find(out.begin() + begin, out.end(), '='), out.end());
  return out;
}

std::optional<std::string> words_of_spoken_id(std::string_view id) {
  const auto dot = id.rfind('.');
  if (dot == id.npos || !id.starts_with("audio_")) return std::nullopt;
  std::string text(id.substr(dot + 1));
  if (text.find_first_of("+/=") != text.npos) return std::nullopt;
  std::replace(text.begin(), text.end(), '-', '+');
  std::replace(text.begin(), text.end(), '_', '/');
  text.append((4 - text.size() % 4) % 4, '=');
  auto words = base64::decode(text);
  if (words && !base::utf8::valid(*words)) words.reset();
  return words;
}

} // namespace parley::protocol
