#include "inference/verify/families.hpp"

namespace parley::inference::verify {

void replay_image(golden_set& files, const std::string& stem, report& out) {
  for (const auto& [section, content] : files.cases(stem).items()) {
    if (section == "procedural") continue; // how the pictures are drawn
    if (!content.is_array()) {
      out.skip(stem, section, "vision");
      continue;
    }
    for (std::size_t i = 0; i < content.size(); ++i) out.skip(stem, section + "." + std::to_string(i), "vision");
  }
}

} // namespace parley::inference::verify
