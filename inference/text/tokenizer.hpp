#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parley::inference {

/// The index type of torch.
using token_id = std::int64_t;

/// The byte-level BPE of a checkpoint folder, identical to that of Hugging Face (docs/model/thinker.md 1). Reads
/// `tokenizer_config.json` and `tokenizer.json`, or without the latter `vocab.json` and `merges.txt`. Immutable after
/// `open`; copies share the tables; several threads may use it.
class tokenizer {
public:
  /// Throws std::runtime_error naming the file if one is missing or invalid, or naming what `tokenizer.json` requires
  /// that is not implemented. Merges that `merges.txt` lacks are derived from the ids, and logged.
  static tokenizer open(const std::filesystem::path& directory);

  /// Added tokens in the text become their ids; nothing is added before or after. Invalid UTF-8 becomes U+FFFD.
  std::vector<token_id> encode(std::string_view text) const;

  /// A stretch of bytes [begin, end) of a text.
  struct stretch {
    std::size_t begin;
    std::size_t end;
  };

  /// The same, but special tokens that touch a `quoted` stretch (ascending, disjoint) are plain text, so that clients'
  /// text can't forge control tokens. `text` must be valid UTF-8, so that the stretches keep their positions. Once there
  /// are more than `most` tokens, the rest of the text is left out.
  std::vector<token_id> encode(std::string_view text, std::span<const stretch> quoted,
                               std::size_t most = std::numeric_limits<std::size_t>::max()) const;

  /// The bytes of all tokens, made valid UTF-8 as a whole: one U+FFFD per maximal invalid part. Unknown ids give
  /// nothing.
  std::string decode(std::span<const token_id> ids, bool skip_special = false) const;

  /// The token's part of a decoded text before it is made valid UTF-8: any bytes for a base token, its text for an
  /// added one. Empty outside the table. Lives as long as any copy of the tokenizer.
  std::string_view bytes(token_id id) const;

  /// Exact token text, base vocabulary (in its byte alphabet) or added: `convert_tokens_to_ids`. Unknown → `unk()`.
  token_id id(std::string_view token) const;
  std::optional<token_id> find(std::string_view token) const;

  /// Whether `skip_special` drops the token.
  bool is_special(token_id id) const;

  /// The ban list of `tokenizer_config.json`, in its order; empty when the file has none (docs/model/thinker.md 5.4,
  /// 6.4).
  std::span<const token_id> bad_token_ids() const;

  /// Added tokens (text, id) by id, special or not.
  std::vector<std::pair<std::string, token_id>> added_tokens() const;

  /// Number of tokens, base and added: Hugging Face's len().
  token_id size() const;

  /// Number of merge rules, and how many of them no file contained.
  std::size_t merges() const;
  std::size_t derived_merges() const;

  token_id bos() const;
  token_id eos() const;
  token_id pad() const;
  token_id unk() const;

private:
  struct tables;
  explicit tokenizer(std::shared_ptr<const tables> t);

  std::shared_ptr<const tables> tables_;
};

/// Text of a growing id sequence (utils.py:309): certain text is returned at once; bytes of an unfinished character
/// wait. One per answer. Gives the same text as decoding all ids each time and holding back U+FFFD at the end.
class stream_decoder {
public:
  explicit stream_decoder(tokenizer source, bool skip_special = false);

  /// The new text that these ids complete; may be empty.
  std::string push(std::span<const token_id> ids);

  /// The rest, with U+FFFD for what never became a character.
  std::string finish();

private:
  tokenizer source_;
  bool skip_special_;
  std::string pending_; ///< bytes that may still become a character
};

} // namespace parley::inference
