#pragma once

#include "net/access/key_limits.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::net {

/// The API keys of a server. The file contains SHA-256 hashes: keys are long and random, so a plain hash keeps them
/// secret. Immutable after `load`; may be used from several threads.
class api_keys {
public:
  struct owner {
    std::string name;
    bool admin = false; ///< may see and close all sessions, and drain workers
    key_limits limits{};
  };

  /// Without keys, none is needed.
  api_keys() = default;

  /// Reads lines `NAME HASH [admin] [LIMIT=NUMBER]...`; `#` begins a comment. If the file lists no key, nobody is admitted. \throws
  /// config::settings_error with file and line
  static api_keys load(const std::filesystem::path& file);

  /// Whether a key is needed at all.
  bool asked() const { return asked_; }

  /// The owner of the key, or none. Takes the same time for every key, however much of it is correct.
  std::optional<owner> find(std::string_view key) const;

  /// Whether a key with this name is listed.
  bool has_owner(std::string_view name) const;

  std::size_t size() const { return entries_.size(); }

  /// Of all keys, by their names.
  std::map<std::string, key_limits, std::less<>> limits() const;

  /// Names of the keys that are here and not in `others`. A name with another hash is another key.
  std::vector<std::string> missing_in(const api_keys& others) const;

private:
  using digest = std::array<std::uint8_t, 32>;
  struct entry {
    digest hash;
    owner whose;

    bool is_key_of(const entry& other) const { return hash == other.hash && whose.name == other.whose.name; }
  };

  bool asked_ = false;
  std::vector<entry> entries_;
};

} // namespace parley::net
