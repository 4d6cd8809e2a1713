#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace parley::inference::text {

/// A token that is recognised in raw text before anything else.
struct added_token {
  std::string content;
  std::int64_t id;
  bool special; ///< dropped when decoding without special tokens
};

/// The parts of a byte-level BPE as read from its files; not yet checked against each other.
struct tokenizer_files {
  std::filesystem::path vocabulary_file;                        ///< for messages
  std::vector<std::pair<std::string, std::int64_t>> vocabulary; ///< in the byte alphabet, with ids
  std::vector<std::pair<std::string, std::string>> merges;      ///< by rank
  std::vector<added_token> added;
};

/// Reads `tokenizer.json`, the only file that the reference's tokenizer class loads. Merges may be pairs or strings.
/// Throws std::runtime_error naming the file, and naming a normalizer, pre-tokenizer or model other than the
/// implemented ones: NFC, Qwen2's pattern, byte-level BPE.
tokenizer_files read_tokenizer_json(const std::filesystem::path& file);

/// Reads `vocab.json`, an object with ids as published or a list of the tokens in the order of their ids, and `merges.txt`. Throws std::runtime_error naming the file.
tokenizer_files read_vocabulary_and_merges(const std::filesystem::path& directory);

/// The regular expression of the implemented pre-tokenizer, as tokenizer.json writes it.
extern const char* const known_pattern;

} // namespace parley::inference::text
