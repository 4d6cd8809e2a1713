#pragma once

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <string_view>

namespace parley::inference {

/// Whether a JSON text nests deeper than `levels`. Values are copied, printed and destroyed by recursion, which would
/// overflow the stack on a text that nests a million levels deep.
bool nests_deeper(std::string_view text, int levels);

/// Parses a JSON file of a checkpoint. Throws std::runtime_error naming the file.
nlohmann::json read_json(const std::filesystem::path& path);

/// `from[key]`; null if it is absent or `from` is not an object.
const nlohmann::json& member(const nlohmann::json& from, const char* key);

} // namespace parley::inference
