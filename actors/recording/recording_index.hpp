#pragma once

#include "actors/recording/recording_facts.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parley::actors {

/// An in-memory index of all recordings below one directory, read from the meta.json of each folder. It is never
/// written to disk, so recordings can be listed and deleted even if the disk is full. Not thread-safe.
class recording_index {
public:
  /// Reads the folders. Recordings that an earlier process left unfinished become `cut`, and their contents are
  /// counted; if that cannot be written to disk, it is logged. Throws std::filesystem::filesystem_error if the
  /// directory can't be created or read.
  explicit recording_index(const std::filesystem::path& directory);

  /// Adds a recording, or replaces the one with the same id.
  void put(const recording_facts& facts);

  void remove(std::string_view id);

  /// Finds it by the id of either dialect.
  std::optional<recording_facts> find(std::string_view id) const;

  /// Newest first. `key` = only that key's recordings.
  std::vector<recording_facts> list(std::optional<std::string_view> key, std::size_t most) const;

  struct totals {
    std::int64_t recordings = 0;
    std::int64_t bytes = 0;
  };
  totals sum() const { return sum_; }

private:
  void read_folder(const std::filesystem::path& folder);

  std::map<std::string, recording_facts, std::less<>> by_id_;
  totals sum_;
};

} // namespace parley::actors
