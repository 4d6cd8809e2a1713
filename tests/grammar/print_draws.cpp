#include "grammar/json_state.hpp"

#include <iostream>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

// Reads lines with tabs between: a schema, how many values to draw, and texts. Prints for each line, with tabs between:
// the path of what cannot be honoured and why, or `good` and nothing; for each text whether the grammar has it, as 0 or 1; the values.

using namespace parley::grammar;

namespace {

constexpr std::string_view end = ";"; ///< so that numbers end

std::vector<std::string> parts_of(std::string_view line) {
  std::vector<std::string> out;
  for (;;) {
    const auto size = std::min(line.find('\t'), line.size());
    out.emplace_back(line.substr(0, size));
    if (size == line.size()) return out;
    line.remove_prefix(size + 1);
  }
}

bool whole(const json_grammar& grammar, std::string_view text) {
  json_state state(grammar);
  return state.feed(text) && state.done();
}

/// Random bytes that fit, of those that the state may have, and then what ends the text.
std::string draw(const json_grammar& grammar, std::mt19937& random) {
  static const std::string often =
      "\"\"\",,::{}[]]}}0123456789-.eE+tfn \\/abdrutlsxkeyABZ_@\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x98\x80";
  json_state state(grammar), next(state);
  std::string out;
  const auto size = random() % 4 == 0 ? 400 : random() % 60;
  for (int tries = 0; tries < 3000 && out.size() < size && !state.done(); ++tries) {
    const auto byte = random() % 8 == 0 ? static_cast<char>(random() % 256) : often[random() % often.size()];
    next = state;
    if (!next.feed({&byte, 1})) continue;
    std::swap(state, next);
    out += byte;
  }
  const auto rest = state.completion();
  if (rest.size() != state.completion_bytes() || !state.feed(rest) || !state.done())
    return out + " cannot end with " + rest;
  out += rest;
  return out.substr(0, out.size() - end.size());
}

} // namespace

int main() {
  std::string line;
  std::mt19937 random(1);
  while (std::getline(std::cin, line)) {
    const auto parts = parts_of(line);
    auto work = most_work;
    const auto objection = object_to(parts.at(0), false, work);
    std::cout << (objection ? "schema" + objection->path : "good") << '\t' << (objection ? objection->what : "");
    const std::vector<json_grammar::form> forms{{"", parts[0], std::string(end)}};
    const json_grammar grammar(forms);
    for (std::size_t i = 2; i < parts.size(); ++i) std::cout << '\t' << whole(grammar, parts[i] + std::string(end));
    for (int i = std::stoi(parts.at(1)); i > 0; --i) std::cout << '\t' << draw(grammar, random);
    std::cout << '\n';
  }
  return 0;
}
