#pragma once

#include "inference/text/tokenizer_files.hpp"

#include <filesystem>

namespace parley::inference::init {

/// Writes `tokenizer.json` in the form in which MiniCPM-o 4.5 is published: NFC, Qwen2's pattern, byte-level BPE with
/// merges as pairs. Throws std::runtime_error naming the file.
void write_tokenizer_json(const std::filesystem::path& file, const text::tokenizer_files& files);

} // namespace parley::inference::init
