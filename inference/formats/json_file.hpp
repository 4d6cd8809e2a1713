#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace parley::inference {

/// Parses a JSON file of a checkpoint. Throws std::runtime_error naming the file.
nlohmann::json read_json(const std::filesystem::path& path);

/// `from[key]`; null if it is absent or `from` is not an object.
const nlohmann::json& member(const nlohmann::json& from, const char* key);

} // namespace parley::inference
