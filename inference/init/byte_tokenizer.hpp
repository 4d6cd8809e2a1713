#pragma once

#include "inference/text/tokenizer_files.hpp"

#include <cstdint>
#include <filesystem>

namespace parley::inference::init {

/// 256 byte tokens, filler up to `base_tokens`, then the added tokens of MiniCPM-o 4.5, with `<unk>` at `unk_id`.
/// Without merges, text is encoded byte by byte.
text::tokenizer_files byte_tokenizer(std::int64_t base_tokens, std::int64_t unk_id);

/// Writes `tokenizer.json`, `tokenizer_config.json`, and the files that older readers expect: `vocab.json`,
/// `merges.txt` and `added_tokens.json`. Throws std::runtime_error naming the file.
void write_tokenizer(const std::filesystem::path& folder, const text::tokenizer_files& files);

} // namespace parley::inference::init
