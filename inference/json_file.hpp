#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace parley::inference {

/// Parses a JSON file of a checkpoint. Throws std::runtime_error naming the file.
nlohmann::json read_json(const std::filesystem::path& path);

} // namespace parley::inference
