#include "inference/formats/json_file.hpp"

#include "inference/formats/file_problem.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <stdexcept>

namespace parley::inference {

nlohmann::json read_json(const std::filesystem::path& path) {
  if (const auto problem = file_problem(path); problem && *problem != is_missing)
    throw std::runtime_error(path.string() + ": " + *problem);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": can't open");
  try {
    return nlohmann::json::parse(file);
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
