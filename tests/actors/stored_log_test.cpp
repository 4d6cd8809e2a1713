#include "actors/log/log_format.hpp"
#include "actors/log/log_record.hpp"
#include "actors/log/rebuild.hpp"
#include "base/read_file.hpp"
#include "tests/actors/test_server.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <string>
#include <vector>

// Logs that a process wrote which was killed, in an earlier build of Parley, and the events that its client had
// (tests/data/README.md). They stay as they are: who reads logs no more that these builds wrote raises `oldest_log_version`, and
// their sessions do not survive the update.
namespace parley::actors {

namespace {

using nlohmann::json;

std::string path_of(const std::string& name) {
  return "tests/data/logs/" + name;
}

/// What the client had; of sound, the number of letters.
std::vector<json> told_by(const std::string& name) {
  std::ifstream file(path_of(name + ".jsonl"));
  std::vector<json> events;
  for (std::string line; std::getline(file, line);) events.push_back(json::parse(line));
  return events;
}

json without_sound(const std::string& frame) {
  auto event = json::parse(frame);
  if (event.contains("audio")) event["audio"] = event["audio"].get_ref<const std::string&>().size();
  return event;
}

} // namespace

TEST_CASE("logs of an earlier build are read") {
  const auto [name, units] = GENERATE(std::pair("duplex", 1U), std::pair("chat", 0U));
  CAPTURE(name);
  const auto log = base::read_file(path_of(name + std::string(".session")));
  REQUIRE(log);
  const auto told = told_by(name);

  CHECK(log->at(log_header_bytes - 8) == 4); // its version

  SECTION("each record is the one that this build would write") {
    log_reader in(*log);
    std::size_t records = 0;
    for (; const auto bytes = in.next(); ++records) {
      const auto record = unpack_record(*bytes);
      REQUIRE(record);
      const bool same = pack(*record) == *bytes;
      CHECK(same);
    }
    CHECK(records > told.size());
    CHECK(in.good_bytes() == log->size());
  }
  SECTION("the session is rebuilt, and has said the same") {
    const auto known = survey(*log);
    REQUIRE(known);
    rebuild_terms terms;
    terms.resume_bytes = 1u << 30;
    terms.shown_token = told.at(0)["resume_token"];
    terms.fresh_tokens = [] { return std::string("resume_next"); };
    terms.now = protocol::time_point(std::chrono::hours(1000));
    terms.now_ns = known->begin.accepted_ns + std::chrono::nanoseconds(std::chrono::seconds(5)).count();
    auto session = rebuild(*log, terms);
    REQUIRE(session);
    CHECK(session->kept.units() == units);
    CHECK(session->kept.awaits_answer() == (units == 0)); // the chat was killed in the middle of an answer
    std::vector<json> again;
    session->sent.after(0, [&](const auto& frame) { again.push_back(without_sound(*frame)); });
    REQUIRE(again.size() >= told.size()); // its client had not read the last ones yet
    again.resize(told.size());
    CHECK(again == told);

    // It goes on as it began: what came later is unknown to it.
    const auto now = terms.now + std::chrono::seconds(1);
    const auto effects = session->machine->on_frame(R"({"type":"input.tool_result","tool_call_id":"x"})", now);
    REQUIRE(effects.size() == 1);
    const auto& answer = std::get<protocol::send>(effects[0]).event;
    CHECK(std::get<protocol::error_event>(answer).code == protocol::error_code::unknown_event);
  }
}

} // namespace parley::actors
