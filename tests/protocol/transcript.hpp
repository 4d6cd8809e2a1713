#pragma once

#include "tests/protocol/session_driver.hpp"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

// Golden transcripts: conversations as they pass over the wire, one JSON object a line (tests/data/transcripts/README.md).
namespace parley::protocol::test {

struct transcript {
  driver::options with;
  std::vector<nlohmann::json> lines; ///< without the first one, which describes it
};

/// Writes out what a transcript writes short: `$pcm:N` is N samples of 0.25, `$jpeg` a tiny picture, both in base64.
void expand(nlohmann::json& value);

transcript read_transcript(const std::string& path);

/// What the server sends when the transcript's other parties say their lines: `{"from":"server",…}` after each of them.
std::vector<nlohmann::json> replay(const transcript& of);

} // namespace parley::protocol::test
