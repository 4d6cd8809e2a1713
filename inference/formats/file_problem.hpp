#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace parley::inference {

inline constexpr auto is_missing = "is missing";
inline constexpr auto is_not_regular = "is not a regular file";

/// Why a file can't be what its name says, and what to do about it: it is missing, a broken link, empty, or the pointer
/// that a clone without Git LFS leaves behind; or it is a folder, a pipe or a device. None = no such problem.
std::optional<std::string> file_problem(const std::filesystem::path& file);

/// The bytes of a file, which may have at most `most`. A pipe is read to its end, as a model may be served from one;
/// `check-model` refuses it. Throws std::runtime_error naming the file.
std::string read_whole_file(const std::filesystem::path& file, std::size_t most);

/// Far more than any file of a checkpoint that is read as a whole: texts, and a voice.
inline constexpr std::size_t largest_text = 64 << 20;

/// What a folder contains instead of safetensors, if recognised: llama.cpp files, or an unfinished download.
std::optional<std::string> folder_problem(const std::filesystem::path& folder);

} // namespace parley::inference
