#include "actors/recording/recorder_feed.hpp"
#include "actors/recording/recording_folder.hpp"
#include "actors/recording/recording_index.hpp"
#include "actors/recording/retention.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/wav.hpp"
#include "tests/actors/test_server.hpp"
#include "tests/support/recordings_client.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <sys/stat.h>

using namespace parley;
using namespace parley::actors;
using namespace parley::tests;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

const principal everybody{"", true};

std::string content_of(const fs::path& file) {
  std::ifstream from(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(from), {}};
}

std::vector<json> events_of(const std::string& lines) {
  std::vector<json> events;
  std::istringstream from(lines);
  for (std::string line; std::getline(from, line);) events.push_back(json::parse(line));
  return events;
}

std::size_t samples_in(const std::string& wav, std::uint32_t rate) {
  protocol::wav_options wanted;
  wanted.rate = rate;
  if (wav.size() == 44) return 0; // read_wav refuses a file with nothing but a header
  const auto read = protocol::read_wav(wav, wanted);
  REQUIRE(read);
  return read->size();
}

config::settings recording_in(const fs::path& folder) {
  auto settings = test_server::quick_settings();
  settings.record.dir = folder.string();
  return settings;
}

/// Answers each unit with 1,200 samples of 24 kHz sound.
void speak(stub_script& script) {
  script.answer_units_with([](conversation::step_output sound, const stub_script::sink& tell) {
    auto text = sound;
    text.kind = conversation::output_kind::text;
    text.text = "yes";
    text.last = false;
    tell(std::move(text));
    sound.kind = conversation::output_kind::audio;
    sound.audio = std::make_shared<const std::vector<float>>(1200, 0.5f);
    sound.first = false;
    tell(std::move(sound));
  });
}

} // namespace

TEST_CASE("a session leaves both sides' sound, every event and its facts") {
  temporary_folder folder;
  stub_script script;
  speak(script);
  test_server core(recording_in(folder.path()));
  core.add_up(script);
  auto client = core.connect();
  client.link->next("session.queue_done");
  const auto created = client.init(R"({"api_key":"k-secret"})");
  const std::string id = created["session_id"];
  CHECK(created["recording_id"] == id);
  for (int unit = 0; unit < 3; ++unit) {
    client.step();
    client.link->next("response.output.delta");
  }
  CHECK(client.close_session() == "user_stop");

  recordings_client recordings(*core.core().recordings());
  const auto facts = recordings.wait_for_listed(id);
  CHECK(facts["state"] == "closed");
  CHECK(facts["reason"] == "user_stop");
  CHECK(facts["mode"] == "audio");
  CHECK(facts["input_samples"] == 48'000);
  CHECK(facts["output_samples"] == 3600);
  CHECK(facts["dropped"] == 0);
  CHECK(samples_in(recordings.fetch(id, "input.wav").content, 16'000) == 48'000);
  CHECK(samples_in(recordings.fetch(id, "output.wav").content, 24'000) == 3600);
  CHECK(json::parse(recordings.fetch(id, "meta.json").content) == facts);

  const auto lines = recordings.fetch(id, "events.jsonl").content;
  CHECK(lines.find("k-secret") == std::string::npos);
  const auto events = events_of(lines);
  CHECK(events.size() == static_cast<std::size_t>(facts["events"]));
  std::vector<std::string> told;
  double before = 0;
  for (const auto& each : events) {
    CHECK(each["t"] >= before);
    before = each["t"];
    told.push_back(each["from"].get<std::string>() + " " + each["event"]["type"].get<std::string>());
  }
  CHECK(told ==
        std::vector<std::string>{"server session.queue_done", "client session.init", "server session.created",
                                 "client input.append", "server response.output.delta", "server response.output.delta",
                                 "client input.append", "server response.output.delta", "server response.output.delta",
                                 "client input.append", "server response.output.delta", "server response.output.delta",
                                 "client session.close", "server session.closed"});
  CHECK(events[6]["event"]["input"]["audio"] == json{{"wav", "input.wav"}, {"at", 16'000}, {"samples", 16'000}});
  CHECK(events[8]["event"]["audio"] == json{{"wav", "output.wav"}, {"at", 1200}, {"samples", 1200}});
}

TEST_CASE("a recording is its own key's, and no name leads out of it") {
  temporary_folder folder;
  stub_script script;
  test_server core(recording_in(folder.path()));
  core.add_up(script);
  std::ofstream(folder.path() / "secret.txt") << "not for you";
  auto link = std::make_shared<recording_link>();
  connection_info info;
  info.mode = "audio";
  info.key = "ann";
  info.accepted = std::chrono::steady_clock::now();
  test_client client{link, core.core().admit(std::move(info), link)};
  const std::string id = client.init()["session_id"];
  client.close_session();
  recordings_client recordings(*core.core().recordings());
  recordings.wait_for_listed(id);
  CHECK(recordings.list({"ann", false}).size() == 1);
  CHECK(recordings.list({"bob", false}).empty());
  CHECK(recordings.fetch(id, "meta.json", {"bob", false}).answer == recording_answer::forbidden);
  CHECK(recordings.fetch(id, "meta.json", {"ann", false}).answer == recording_answer::done);
  for (const char* file : {"../../secret.txt", "frames/../../../secret.txt", "frames/..", "", "frames/", "frames",
                           "frames/a/b.jpg", "/etc/passwd", "frames/000000.jpg", "meta.json.new"})
    CHECK(recordings.fetch(id, file).answer == recording_answer::unknown);
  CHECK(recordings.fetch("..", "secret.txt").answer == recording_answer::unknown);
  CHECK(recordings.fetch("../..", "meta.json").answer == recording_answer::unknown);
  CHECK(recordings.remove(id, {"bob", false}) == recording_answer::forbidden);
  CHECK(recordings.remove(id, {"ann", false}) == recording_answer::done);
  CHECK(recordings.list(everybody).empty());
  CHECK(recordings.fetch(id, "meta.json").answer == recording_answer::unknown);
}

TEST_CASE("an id that comes again gets a recording of its own, and who only waits gets none") {
  temporary_folder folder;
  stub_script script(1);
  test_server core(recording_in(folder.path()));
  core.add_up(script);
  for (const char* expected : {"mine", "mine-2"}) {
    auto client = core.connect("audio", {}, "mine");
    const auto created = client.init();
    CHECK(created["session_id"] == "mine");
    CHECK(created["recording_id"] == expected);
    if (std::string(expected) == "mine") {
      auto waiting = core.connect("audio", {}, "waiting");
      waiting.link->next("session.queued");
      waiting.vanish();
    }
    client.close_session();
    CHECK(core.all_free());
  }
  recordings_client recordings(*core.core().recordings());
  recordings.wait_for_listed("mine-2");
  CHECK(recordings.list(everybody).size() == 2);
}

TEST_CASE("an id that was taken any number of times is soon followed by a free one") {
  prometheus::Registry registry;
  recording_meter counted(registry);
  recorder_feed feed(0, counted);
  CHECK(feed.take_id("mine") == "mine");
  for (int next = 2; next < 3000; ++next) CHECK(feed.take_id("mine") == "mine-" + std::to_string(next));
  CHECK(feed.take_id("yours") == "yours");
  for (const auto* gap : {"mine-1500", "mine-7"}) feed.forgotten(gap);
  std::set<std::string> more;
  for (int i = 0; i < 10; ++i) more.insert(feed.take_id("mine"));
  CHECK(more.size() == 10); // each free, whichever they are
  CHECK_FALSE(more.contains("mine-1499"));
}

TEST_CASE("all sessions behind a connection that speaks an API of OpenAI's are one recording, under its id") {
  temporary_folder folder;
  stub_script script;
  test_server core(recording_in(folder.path()));
  core.add_up(script);
  const auto link = std::make_shared<recording_link>();
  connection_info info;
  info.remote = "test";
  info.key = "ann";
  info.accepted = std::chrono::steady_clock::now();
  info.realtime = realtime_request{"any", true, openai_dialect::realtime};
  const auto handle = core.core().admit(std::move(info), link);
  const std::string id = link->next("session.created")["session"]["id"];
  for (int i = 0; i < 3; ++i) {
    handle->text(R"({"type":"response.create","response":{"output_modalities":["text"]}})");
    CHECK(link->next("response.done")["response"]["status"] == "completed");
  }
  handle->gone();
  recordings_client recordings(*core.core().recordings());
  const auto facts = recordings.wait_for_listed(id);
  CHECK(recordings.list(everybody).size() == 1);
  CHECK(facts["state"] == "closed");
  CHECK(facts["mode"] == "chat");
  CHECK(facts["key"] == "ann");
  int turns = 0;
  double before = 0;
  for (const auto& each : events_of(recordings.fetch(id, "events.jsonl").content)) {
    turns += each["event"]["type"] == "input.append";
    CHECK(each["t"] >= before);
    before = each["t"];
  }
  CHECK(turns == 3);
}

TEST_CASE("what the queue does not hold is dropped and counted, and the session goes on") {
  temporary_folder folder;
  auto settings = recording_in(folder.path());
  settings.record.queue_bytes = 4096;
  stub_script script;
  test_server core(settings);
  core.add_up(script);
  auto client = core.connect();
  const std::string id = client.init()["session_id"];
  client.step();
  client.close_session();
  recordings_client recordings(*core.core().recordings());
  const auto facts = recordings.wait_for_listed(id);
  CHECK(facts["dropped"] >= 1);
  CHECK(facts["input_samples"] == 0);
}

TEST_CASE("a disk that refuses ends the recording, not the session") {
  temporary_folder folder;
  stub_script script;
  test_server core(recording_in(folder.path()));
  core.add_up(script);
  // A file is in the way where the day's folder should be created.
  std::ofstream(folder.path() / utc_date(std::chrono::duration_cast<std::chrono::milliseconds>(
                                             std::chrono::system_clock::now().time_since_epoch())
                                             .count()));
  auto client = core.connect();
  client.init();
  client.step();
  CHECK(client.close_session() == "user_stop");
  CHECK(core.all_free());
  CHECK(recordings_client(*core.core().recordings()).list(everybody).empty());
}

TEST_CASE("at every moment what was written opens") {
  temporary_folder folder;
  recording_facts facts;
  facts.id = "a";
  facts.folder = "2026-01-02/a";
  recording_folder growing(folder.path(), facts);
  std::string delta = R"({"type":"response.output.delta","kind":"audio","audio":")";
  protocol::append_samples(std::vector<float>(2400, 0.25f), delta);
  delta += R"("})";
  for (std::size_t seconds = 0; seconds < 3; ++seconds) {
    CHECK(samples_in(content_of(folder.path() / "2026-01-02/a/input.wav"), 16'000) == seconds * 16'000);
    CHECK(samples_in(content_of(folder.path() / "2026-01-02/a/output.wav"), 24'000) == seconds * 2400);
    CHECK(events_of(content_of(folder.path() / "2026-01-02/a/events.jsonl")).size() == 3 * seconds);
    growing.write(speaker::client, 1000.0 * seconds, append_frame(), accepted_media::samples);
    growing.write(speaker::server, 1000.0 * seconds + 300, delta, accepted_media::samples);
    growing.write(speaker::client, 1000.0 * seconds + 400, "no JSON", accepted_media::none);
  }
  const auto wav = protocol::read_wav(content_of(folder.path() / "2026-01-02/a/output.wav"), {24'000});
  REQUIRE(wav);
  CHECK((*wav)[7199] == Approx(0.25).margin(1e-4));

  // Files as a crash leaves them.
  recording_index index(folder.path());
  const auto found = index.find("a");
  REQUIRE(found);
  CHECK(found->state == "cut");
  CHECK(found->input_samples == 48'000);
  CHECK(found->output_samples == 7200);
  CHECK(found->events == 9);
  CHECK(found->seconds == Approx(2.4));
}

TEST_CASE("the index is what the folders say") {
  temporary_folder folder;
  recording_facts facts;
  facts.id = "a";
  facts.folder = "2026-01-02/a";
  facts.mode = "audio";
  facts.legacy_id = "rt_a";
  {
    recording_folder made(folder.path(), facts);
    made.finish("closed", "audio", "timeout", 12.5, 0);
  }
  recording_index index(folder.path());
  const auto found = index.find("a");
  REQUIRE(found);
  CHECK(found->state == "closed");
  CHECK(found->reason == "timeout");
  CHECK(found->seconds == 12.5);
  CHECK(index.find("rt_a")->id == "a");
  CHECK_FALSE(index.find(""));
  CHECK(index.sum().recordings == 1);
  const auto bytes = index.sum().bytes;

  facts = *found;
  facts.id = "b";
  facts.key = "ann";
  facts.started_ms = 5;
  index.put(facts);
  index.put(facts);
  CHECK(index.sum().recordings == 2);
  CHECK(index.sum().bytes == 2 * bytes);
  CHECK(index.list({}, 10).front().id == "b");
  CHECK(index.list({}, 1).size() == 1);
  CHECK(index.list("ann", 10).size() == 1);
  index.remove("b");
  index.remove("nobody");
  CHECK(index.sum().bytes == bytes);
  CHECK_FALSE(recording_index(folder.path()).find("b"));
}

TEST_CASE("what cannot be brought up to date is listed nevertheless") {
  temporary_folder folder;
  recording_facts facts;
  facts.id = "a";
  facts.folder = "2026-01-02/a";
  { recording_folder growing(folder.path(), facts); }
  // A non-empty folder is in the way of the new meta.json, so that nobody can create the file.
  fs::create_directories(folder.path() / "2026-01-02/a/meta.json.new/x");
  const auto found = recording_index(folder.path()).find("a");
  REQUIRE(found);
  CHECK(found->state == "cut");
}

TEST_CASE("what a session refuses is not decoded into its recording") {
  temporary_folder folder;
  stub_script script;
  test_server core(recording_in(folder.path()));
  core.add_up(script);
  auto client = core.connect();
  client.link->next("session.queue_done");
  client.send_text(append_frame()); // sent before the init
  client.link->next("error");
  const std::string id = client.init()["session_id"];
  client.step();
  // Read as float32 it has three samples too many; read as a 1 kHz WAV file it lasts 60 s.
  const auto file = protocol::write_wav(std::vector<float>(30'000), 1000);
  std::string bytes;
  protocol::base64::append(std::as_bytes(std::span(file)).first(file.size() / 4 * 4 - 2), bytes);
  client.send_text(R"({"type":"input.append","input":{"audio":")" + bytes + R"("}})");
  client.link->next("error");
  client.send_text(R"({"type":"input.append","input":{"audio":"AAA","note":")" + std::string(100'000, 'x') + R"("}})");
  client.link->next("error");
  client.close_session();
  recordings_client recordings(*core.core().recordings());
  const auto facts = recordings.wait_for_listed(id);
  CHECK(facts["input_samples"] == 16'000);
  std::vector<json> sounds;
  std::vector<json> wholes;
  for (const auto& each : events_of(recordings.fetch(id, "events.jsonl").content)) {
    if (each["from"] != "client") continue;
    if (each["event"].contains("left_out")) wholes.push_back(each["event"]);
    if (each["event"].contains("input")) sounds.push_back(each["event"]["input"]["audio"]);
  }
  REQUIRE(sounds.size() == 3);
  CHECK(sounds[0]["left_out"] == "refused");
  CHECK(sounds[1]["samples"] == 16'000);
  CHECK(sounds[2]["left_out"] == "refused");
  REQUIRE(wholes.size() == 1);
  CHECK(wholes[0]["left_out"] == "refused");
}

TEST_CASE("a disk that refuses is an answer, and the archivist goes on") {
  temporary_folder folder;
  stub_script script;
  test_server core(recording_in(folder.path()));
  core.add_up(script);
  auto client = core.connect();
  const std::string id = client.init()["session_id"];
  client.close_session();
  recordings_client recordings(*core.core().recordings());
  const auto facts = recordings.wait_for_listed(id);
  const auto where = folder.path() / facts["folder"].get<std::string>();
  // A folder in place of a file can be opened, but not read. A name that is too long cannot even be looked up.
  fs::remove(where / "input.wav");
  fs::create_directory(where / "input.wav");
  CHECK(recordings.fetch(id, "input.wav").answer != recording_answer::done);
  CHECK(recordings.fetch(id, "frames/" + std::string(5000, 'a') + ".jpg").answer != recording_answer::done);
  CHECK(recordings.list(everybody).size() == 1);
  CHECK(recordings.remove(id, everybody) == recording_answer::done);
  CHECK(recordings.list(everybody).empty());
}

TEST_CASE("the old and what is too much goes, the oldest first") {
  constexpr std::int64_t day = 86'400'000;
  std::vector<recording_facts> all(4);
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].id = std::to_string(i);
    all[i].state = "closed";
    all[i].started_ms = (10 - static_cast<std::int64_t>(i)) * day;
    all[i].bytes = 100;
  }
  const auto gone = [&](retention keep) {
    std::string ids;
    for (const auto& each : to_forget(all, keep, 10 * day)) ids += each.id;
    return ids;
  };
  CHECK(gone({0, 0}).empty());
  CHECK(gone({1.5, 0}) == "23");
  CHECK(gone({0, 300}) == "3");
  CHECK(gone({0, 299}) == "23");
  CHECK(gone({0, 1}) == "0123");
  all[0].state = "recording";
  CHECK(gone({0, 1}) == "123");
  all[1].bytes = 1000; // nothing older is kept instead
  CHECK(gone({0, 500}) == "123");
}

TEST_CASE("a pipe among the recordings makes nobody wait") {
  temporary_folder folder;
  const auto day = folder.path() / "2026-01-01";
  for (const auto* name : {"whole", "cut", "pipe"}) fs::create_directories(day / name);
  recording_facts facts;
  facts.state = "recording";
  std::ofstream(day / "cut" / "meta.json") << to_json(facts);
  std::ofstream(day / "whole" / "meta.json") << to_json(facts);
  std::ofstream(day / "whole" / "events.jsonl")
      << "{\"t\":1000.0}\n{\"t\":2500.0,\"x\":\"" << std::string(3u << 20, 'x') << "\"}\n{\"t\":3";
  REQUIRE(::mkfifo((day / "cut" / "events.jsonl").c_str(), 0600) == 0);
  REQUIRE(::mkfifo((day / "pipe" / "meta.json").c_str(), 0600) == 0);
  const recording_index index(folder.path());
  CHECK(index.sum().recordings == 2);
  CHECK(index.find("cut")->events == 0);
  CHECK(index.find("whole")->events == 3);
  CHECK(index.find("whole")->seconds == Approx(0.003));
  CHECK_FALSE(index.find("pipe"));
}
