#pragma once

#include "actors/recording/recording_facts.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;

namespace parley::actors {

/// The table of all recordings in one directory, in SQLite (`index.sqlite`). It says nothing that the folders'
/// meta.json do not say too: a lost one is made anew. Not thread-safe. Every call throws std::runtime_error when SQLite
/// refuses.
class recording_index {
public:
  /// Opens or makes it. Then it agrees with the folders below `directory`: rows without a folder go, folders without a
  /// row come in, and those that an ended process left growing become `cut`, with what they hold counted.
  explicit recording_index(const std::filesystem::path& directory);

  /// Adds it or takes the place of the row with the same id.
  void put(const recording_facts& facts);

  void remove(std::string_view id);

  /// By the id of either dialect.
  std::optional<recording_facts> find(std::string_view id) const;

  /// The newest first. `key` = only that key's.
  std::vector<recording_facts> list(std::optional<std::string_view> key, std::size_t most) const;

  struct totals {
    std::int64_t recordings = 0;
    std::int64_t bytes = 0;
  };
  totals sum() const;

private:
  void reconcile();

  struct closer {
    void operator()(sqlite3* db) const;
  };
  const std::filesystem::path directory_;
  std::unique_ptr<sqlite3, closer> db_;
};

} // namespace parley::actors
