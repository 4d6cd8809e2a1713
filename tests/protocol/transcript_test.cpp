#include "tests/protocol/transcript.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

namespace parley::protocol::test {

namespace {

/// Replaces long base64 by its length and hash, so that a difference is readable.
nlohmann::json shortened(nlohmann::json value) {
  if (value.is_structured()) {
    for (auto& each : value) each = shortened(each);
  } else if (value.is_string() && value.get_ref<const std::string&>().size() > 400) {
    const auto& text = value.get_ref<const std::string&>();
    return "<" + std::to_string(text.size()) + " characters, hash " + std::to_string(std::hash<std::string>{}(text)) +
           ">";
  }
  return value;
}

nlohmann::json expanded(const nlohmann::json& line) {
  nlohmann::json copy = line;
  if (line.at("from") == "server" && copy.contains("event")) expand(copy["event"]);
  return copy;
}

} // namespace

TEST_CASE("golden transcripts are spoken again, word for word") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/data/transcripts")) {
    if (entry.path().extension() != ".jsonl") continue;
    ++files;
    INFO(entry.path());
    const transcript golden = read_transcript(entry.path().string());
    const auto spoken = replay(golden);
    for (std::size_t i = 0; i < std::min(spoken.size(), golden.lines.size()); ++i) {
      INFO("line " << i + 2);
      REQUIRE(shortened(spoken[i]).dump() == shortened(expanded(golden.lines[i])).dump());
    }
    CHECK(spoken.size() == golden.lines.size());
  }
  CHECK(files >= 12);
}

} // namespace parley::protocol::test
