#include "actors/recording/recording_index.hpp"

#include "actors/log/log_file.hpp"
#include "actors/logger.hpp"
#include "base/file_writes.hpp"
#include "base/printable.hpp"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <tuple>

namespace parley::actors {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_meta = std::size_t{1} << 20;

std::int64_t size_of(const fs::path& file) {
  std::error_code absent;
  const auto size = fs::file_size(file, absent);
  return absent ? 0 : static_cast<std::int64_t>(size);
}

/// Counts the lines of events.jsonl, and finds the time in the last: each begins with it.
void count_events(const fs::path& file, recording_facts& facts) {
  constexpr std::string_view time = R"({"t":)";
  constexpr std::size_t at_once = std::size_t{1} << 20;
  constexpr std::size_t longest_time = 64;
  const file_reader in(file);
  facts.events = 0;
  std::string line; // its beginning
  const auto end_line = [&] {
    ++facts.events;
    if (line.starts_with(time)) facts.seconds = std::strtod(line.c_str() + time.size(), nullptr) / 1000;
    line.clear();
  };
  std::size_t from = 0;
  for (auto bytes = in.read(at_once); bytes && !bytes->empty(); bytes = in.read(at_once, from)) {
    from += bytes->size();
    for (const char c : *bytes) {
      if (c == '\n')
        end_line();
      else if (line.size() < longest_time)
        line += c;
    }
  }
  if (!line.empty()) end_line();
}

/// Counts the contents of a folder whose session was never closed.
void count_files(const fs::path& folder, recording_facts& facts) {
  constexpr std::int64_t header_bytes = 44;
  const auto samples = [&](const char* name) {
    return std::max<std::int64_t>(0, size_of(folder / name) - header_bytes) / 2;
  };
  facts.input_samples = samples("input.wav");
  facts.output_samples = samples("output.wav");
  facts.bytes = 0;
  facts.pictures = 0;
  for (const auto& each : fs::recursive_directory_iterator(folder)) {
    if (!each.is_regular_file()) continue;
    facts.bytes += size_of(each.path());
    if (each.path().parent_path().filename() == "frames") ++facts.pictures;
  }
  count_events(folder / "events.jsonl", facts);
}

std::optional<recording_facts> read_meta(const fs::path& folder) {
  const auto text = read_part(folder / "meta.json", longest_meta);
  return text ? facts_from_json(*text) : std::nullopt;
}

} // namespace

recording_index::recording_index(const fs::path& directory) {
  fs::create_directories(directory);
  for (const auto& day : fs::directory_iterator(directory)) {
    if (!day.is_directory()) continue;
    for (const auto& each : fs::directory_iterator(day)) {
      try {
        if (each.is_directory()) read_folder(each);
      } catch (const std::exception& problem) {
        log()->warn("{} is not listed: {}", base::printable(each.path().string(), 1024), problem.what());
      }
    }
  }
}

void recording_index::read_folder(const fs::path& folder) {
  auto facts = read_meta(folder);
  if (!facts) return;
  // The folder may have been moved by hand.
  facts->folder = (folder.parent_path().filename() / folder.filename()).string();
  facts->id = folder.filename().string();
  if (facts->state == "recording") {
    count_files(folder, *facts);
    facts->state = "cut";
    try {
      base::replace_file(folder / "meta.json", to_json(*facts) + "\n");
    } catch (const std::exception& problem) {
      log()->warn("{} cannot be brought up to date: {}", base::printable((folder / "meta.json").string(), 1024),
                  problem.what());
    }
  }
  put(*facts);
}

void recording_index::put(const recording_facts& facts) {
  remove(facts.id);
  by_id_.emplace(facts.id, facts);
  ++sum_.recordings;
  sum_.bytes += facts.bytes;
}

void recording_index::remove(std::string_view id) {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return;
  --sum_.recordings;
  sum_.bytes -= found->second.bytes;
  by_id_.erase(found);
}

std::optional<recording_facts> recording_index::find(std::string_view id) const {
  if (const auto found = by_id_.find(id); found != by_id_.end()) return found->second;
  for (const auto& [own, facts] : by_id_)
    if (facts.legacy_id == id && !id.empty()) return facts;
  return std::nullopt;
}

std::vector<recording_facts> recording_index::list(std::optional<std::string_view> key, std::size_t most) const {
  std::vector<const recording_facts*> found;
  found.reserve(by_id_.size());
  for (const auto& [id, facts] : by_id_)
    if (!key || facts.key == *key) found.push_back(&facts);
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
  std::partial_sort(found.begin(), end, found.end(), [](const auto* a, const auto* b) {
    return std::tie(b->started_ms, a->id) < std::tie(a->started_ms, b->id);
  });
  std::vector<recording_facts> out;
  out.reserve(static_cast<std::size_t>(end - found.begin()));
  std::transform(found.begin(), end, std::back_inserter(out), [](const auto* facts) { return *facts; });
  return out;
}

} // namespace parley::actors
