#include "inference/init/text_file.hpp"

#include <fstream>
#include <stdexcept>

namespace parley::inference::init {

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error(path.string() + ": can't write");
}

} // namespace parley::inference::init
