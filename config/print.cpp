#include "config/print.hpp"

#include "config/keys.hpp"

#include <algorithm>

namespace parley::config {

namespace {

/// Adds a comment, wrapped at the project's line length.
void add_comment(std::string& out, std::string_view doc) {
  constexpr std::size_t width = 118;
  while (!doc.empty()) {
    std::size_t end = doc.size();
    if (end > width) end = doc.rfind(' ', width);
    out += "# ";
    out += doc.substr(0, end);
    out += '\n';
    doc.remove_prefix(std::min(end + 1, doc.size()));
  }
}

} // namespace

std::string print(const settings& source) {
  std::string out = "# Settings of Parley. The environment (PARLEY_SECTION_KEY) overrides this file, `--set "
                    "section.key=value` and other\n"
                    "# flags override both; `parley check-config F` checks a file.\n";
  std::string_view section;
  for (const auto& k : keys()) {
    const auto dot = k.name.find('.');
    if (k.name.substr(0, dot) != section) {
      section = k.name.substr(0, dot);
      out += "\n[";
      out += section;
      out += "]\n";
    }
    add_comment(out, k.doc);
    out += k.name.substr(dot + 1);
    out += " = ";
    out += to_toml(source, k);
    out += '\n';
  }
  return out;
}

} // namespace parley::config
