#include "actors/recording/recording_index.hpp"

#include "actors/recording/file_writes.hpp"
#include "actors/recording/sqlite_statement.hpp"

#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace parley::actors {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view columns =
    "id, legacy_id, folder, key, mode, state, reason, started_ms, seconds, input_samples, output_samples, pictures, "
    "events, dropped, bytes";
constexpr std::string_view make_table =
    "CREATE TABLE IF NOT EXISTS recordings (id TEXT PRIMARY KEY, legacy_id TEXT, folder TEXT, key TEXT, mode TEXT, "
    "state TEXT, reason TEXT, started_ms INTEGER, seconds REAL, input_samples INTEGER, output_samples INTEGER, "
    "pictures INTEGER, events INTEGER, dropped INTEGER, bytes INTEGER)";

recording_facts read_row(const sqlite_statement& row) {
  return {row.text(0),     row.text(1),     row.text(2),     row.text(3),     row.text(4),
          row.text(5),     row.text(6),     row.integer(7),  row.real(8),     row.integer(9),
          row.integer(10), row.integer(11), row.integer(12), row.integer(13), row.integer(14)};
}

std::int64_t size_of(const fs::path& file) {
  std::error_code absent;
  const auto size = fs::file_size(file, absent);
  return absent ? 0 : static_cast<std::int64_t>(size);
}

/// What a folder holds whose session nobody closed.
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
  std::ifstream lines(folder / "events.jsonl");
  facts.events = 0;
  for (std::string line; std::getline(lines, line); ++facts.events) {
    constexpr std::string_view time = R"({"t":)";
    if (line.starts_with(time)) facts.seconds = std::strtod(line.c_str() + time.size(), nullptr) / 1000;
  }
}

std::optional<recording_facts> read_meta(const fs::path& folder) {
  std::ifstream from(folder / "meta.json");
  const std::string text{std::istreambuf_iterator<char>(from), {}};
  return facts_from_json(text);
}

} // namespace

void recording_index::closer::operator()(sqlite3* db) const {
  sqlite3_close(db);
}

recording_index::recording_index(const fs::path& directory) : directory_(directory) {
  fs::create_directories(directory);
  sqlite3* opened = nullptr;
  const auto file = directory / "index.sqlite";
  const int got = sqlite3_open(file.c_str(), &opened);
  db_.reset(opened);
  if (got != SQLITE_OK) throw std::runtime_error(file.string() + ": " + sqlite3_errmsg(opened));
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  // The folders know all of it: a power cut may cost rows, but no write has to wait for the disk.
  sqlite_statement(opened, "PRAGMA journal_mode = WAL").step();
  sqlite_statement(opened, "PRAGMA synchronous = OFF").step();
  sqlite_statement(opened, make_table).step();
  reconcile();
}

void recording_index::reconcile() {
  sqlite_statement(db_.get(), "BEGIN").step();
  std::set<std::string> there;
  for (const auto& day : fs::directory_iterator(directory_)) {
    if (!day.is_directory()) continue;
    for (const auto& each : fs::directory_iterator(day)) {
      auto facts = each.is_directory() ? read_meta(each) : std::nullopt;
      if (!facts) continue;
      // A folder may have been moved by hand.
      facts->folder = (day.path().filename() / each.path().filename()).string();
      facts->id = each.path().filename().string();
      if (facts->state == "recording") {
        count_files(each, *facts);
        facts->state = "cut";
        replace_file(each.path() / "meta.json", to_json(*facts) + "\n");
      }
      put(*facts);
      there.insert(facts->id);
    }
  }
  std::vector<std::string> gone;
  sqlite_statement rows(db_.get(), "SELECT id FROM recordings");
  while (rows.step())
    if (!there.contains(rows.text(0))) gone.push_back(rows.text(0));
  for (const auto& id : gone) remove(id);
  sqlite_statement(db_.get(), "COMMIT").step();
}

void recording_index::put(const recording_facts& facts) {
  sqlite_statement to(db_.get(),
                      "INSERT OR REPLACE INTO recordings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const auto* text :
       {&facts.id, &facts.legacy_id, &facts.folder, &facts.key, &facts.mode, &facts.state, &facts.reason})
    to.bind(std::string_view(*text));
  to.bind(facts.started_ms).bind(facts.seconds);
  for (const auto number :
       {facts.input_samples, facts.output_samples, facts.pictures, facts.events, facts.dropped, facts.bytes})
    to.bind(number);
  to.step();
}

void recording_index::remove(std::string_view id) {
  sqlite_statement(db_.get(), "DELETE FROM recordings WHERE id = ?").bind(id).step();
}

std::optional<recording_facts> recording_index::find(std::string_view id) const {
  const std::string sql = "SELECT " + std::string(columns) + " FROM recordings WHERE id = ? OR legacy_id = ?";
  sqlite_statement row(db_.get(), sql);
  row.bind(id).bind(id);
  return row.step() ? std::optional(read_row(row)) : std::nullopt;
}

std::vector<recording_facts> recording_index::list(std::optional<std::string_view> key, std::size_t most) const {
  const std::string sql = "SELECT " + std::string(columns) + " FROM recordings" + (key ? " WHERE key = ?" : "") +
                          " ORDER BY started_ms DESC, id LIMIT ?";
  sqlite_statement rows(db_.get(), sql);
  if (key) rows.bind(*key);
  rows.bind(static_cast<std::int64_t>(most));
  std::vector<recording_facts> found;
  while (rows.step()) found.push_back(read_row(rows));
  return found;
}

recording_index::totals recording_index::sum() const {
  sqlite_statement row(db_.get(), "SELECT COUNT(*), COALESCE(SUM(bytes), 0) FROM recordings");
  row.step();
  return {row.integer(0), row.integer(1)};
}

} // namespace parley::actors
