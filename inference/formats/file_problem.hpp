#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace parley::inference {

inline constexpr auto is_missing = "is missing";

/// Why a file can't be what its name says, and what to do about it: it is missing, a broken link, empty, or the pointer
/// that a clone without Git LFS leaves behind. None = no such problem.
std::optional<std::string> file_problem(const std::filesystem::path& file);

/// What a folder contains instead of safetensors, if recognised: llama.cpp files, or an unfinished download.
std::optional<std::string> folder_problem(const std::filesystem::path& folder);

} // namespace parley::inference
