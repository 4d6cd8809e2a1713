#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace parley::actors {

/// The facts of one recording: its meta.json, and its row in the index.
struct recording_facts {
  std::string id; ///< id of the session and name of the folder; unique within a recording directory
  std::string legacy_id;
  std::string folder; ///< path below the recording directory: DATE/ID
  std::string key;    ///< name of the API key; empty without keys
  std::string mode;
  std::string state = "recording"; ///< recording, closed, failed (the disk failed) or cut (the process ended first)
  std::string reason;              ///< why the session ended; for `failed`, the disk's error
  std::int64_t started_ms = 0;     ///< Unix time
  double seconds = 0;
  std::int64_t input_samples = 0;  ///< 16 kHz
  std::int64_t output_samples = 0; ///< 24 kHz
  std::int64_t pictures = 0;
  std::int64_t events = 0;
  std::int64_t dropped = 0; ///< events that came too fast for the disk
  std::int64_t bytes = 0;   ///< size of all its files
};

/// The day of a Unix time, YYYY-MM-DD.
std::string utc_date(std::int64_t unix_ms);

/// Returns one line of JSON.
std::string to_json(const recording_facts& facts);

/// Parses the output of `to_json`; nothing for other texts.
std::optional<recording_facts> facts_from_json(std::string_view text);

} // namespace parley::actors
