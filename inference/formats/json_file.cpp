#include "inference/formats/json_file.hpp"

#include "inference/formats/file_problem.hpp"

#include <nlohmann/json.hpp>

#include <stdexcept>
#include <string>

namespace parley::inference {

namespace {

/// The deepest nesting that is accepted; real files come nowhere near it.
constexpr int most_levels = 64;

} // namespace

bool nests_deeper(std::string_view text, int levels) {
  int level = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = text[i];
    if (quoted && c == '\\')
      ++i;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{'))
      ++level;
    else if (!quoted && (c == ']' || c == '}'))
      --level;
    if (level > levels) return true;
  }
  return false;
}

nlohmann::json read_json(const std::filesystem::path& path) {
  const auto text = read_whole_file(path, largest_text);
  if (nests_deeper(text, most_levels)) throw std::runtime_error(path.string() + ": is nested too deeply");
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw std::runtime_error(path.string() + ": " + e.what());
  }
}

const nlohmann::json& member(const nlohmann::json& from, const char* key) {
  static const nlohmann::json none;
  if (!from.is_object()) return none;
  const auto found = from.find(key);
  return found == from.end() ? none : *found;
}

} // namespace parley::inference
