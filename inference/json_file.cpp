#include "inference/json_file.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>

namespace parley::inference {

nlohmann::json read_json(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": can't open");
  try {
    return nlohmann::json::parse(file);
  } catch (const nlohmann::json::exception& e) {
    throw std::runtime_error(path.string() + ": " + e.what());
  }
}

} // namespace parley::inference
