#pragma once

#include "tests/protocol/session_driver.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

// Golden transcripts: conversations as they pass over the wire, one JSON object per line
// (tests/data/transcripts/README.md).
namespace parley::protocol::test {

struct transcript {
  driver::options with;
  std::vector<nlohmann::json> lines; ///< all but the first line, which describes the transcript
};

/// Expands a transcript's abbreviations: `$pcm:N` is N samples of 0.25, `$jpeg` a tiny picture, both in base64.
void expand(nlohmann::json& value);

transcript read_transcript(const std::string& path);

/// Plays the lines of all parties but the server; returns what the server sends after each, as `{"from":"server",…}`.
std::vector<nlohmann::json> replay(const transcript& of);

} // namespace parley::protocol::test
