#pragma once

#include <cstdint>
#include <filesystem>

namespace parley::inference::init {

/// Writes `vocab.json`, `merges.txt` and `tokenizer_config.json`: 256 byte tokens, filler up to `base_tokens`, and the
/// added tokens of MiniCPM-o 4.5 behind them, `<unk>` at `unk_id`. Without merges, text is encoded byte by byte.
void write_byte_tokenizer(const std::filesystem::path& folder, std::int64_t base_tokens, std::int64_t unk_id);

} // namespace parley::inference::init
