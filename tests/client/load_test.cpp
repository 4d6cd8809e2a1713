#include "client/load.hpp"

#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/server_codec.hpp"
#include "protocol/json/document.hpp"
#include "protocol/media/wav.hpp"
#include "tests/client/scripted_server.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <vector>

using namespace parley::client;
namespace protocol = parley::protocol;

namespace {

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// A folder that is removed when the test ends.
struct scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "parley_load_test";
  scratch() { std::filesystem::create_directories(path); }
  ~scratch() { std::filesystem::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
};

/// Answers every unit, every third one with speech.
void serve(scripted_server::peer& client) {
  const auto receive = [&] {
    auto frame = client.receive();
    if (!frame) throw std::runtime_error("the client left");
    return std::move(*frame);
  };
  const protocol::encode_context context{.spoken = protocol::dialect::current, .session_id = "sess_test"};
  client.send(protocol::encode(protocol::session_queue_done{}, {}));
  const auto init = receive();
  if (!decode_session_init(protocol::peek(init).value(), protocol::mode::audio)) throw std::runtime_error("bad init");
  client.send(protocol::encode(protocol::session_created{}, context));
  for (int unit = 1;; ++unit) {
    const auto frame = receive();
    const auto event = protocol::peek(frame).value();
    if (event.type == protocol::client_event_type::session_close) break;
    if (!decode_append(event, protocol::mode::audio, 4000)) throw std::runtime_error("bad append");
    protocol::output_delta delta;
    delta.input_id = "input_" + std::to_string(unit);
    if (unit % 3 == 0) {
      delta.kind = protocol::output_kind::audio;
      delta.audio = std::make_shared<const std::vector<float>>(24'000, 0.1f);
      delta.end_of_turn = true;
    }
    delta.measured.wall_clock_ms = 1;
    delta.measured.dropped_chunks = 0;
    client.send(protocol::encode(delta, context));
  }
  client.send(protocol::encode(protocol::session_closed{.reason = "user_stop", .total = {}}, context));
}

} // namespace

TEST_CASE("a run is measured and reported in three forms") {
  const scratch folder;
  const auto wav = folder / "a.wav";
  std::ofstream(wav, std::ios::binary) << protocol::write_wav(std::vector<float>(40'000, 0.1f), 16'000);
  std::ostringstream out, err;
  int status = -1;
  {
    scripted_server server(serve);
    load_options options{.url = server.url(), .sessions = 1, .seconds = 0.5, .wavs = {wav}};
    options.habits.fast = true;
    options.json = folder / "figures.json";
    options.plot = folder / "plot.svg";
    status = load(options, out, err);
  }
  CHECK(status == 0);
  CHECK_THAT(out.str(), Catch::Contains("sessions            1 requested, 1 held (1 at once), 1 completed"));
  CHECK_THAT(out.str(), Catch::Contains("errors              none"));
  const auto text = read(folder / "figures.json");
  const auto doc = protocol::json::scan(text);
  REQUIRE(doc.outcome == protocol::json::verdict::good);
  const auto root = protocol::json::root(doc);
  const auto units = protocol::json::member(root, "units");
  const auto answered = protocol::json::to_integer(protocol::json::member(units, "answered")).value();
  const auto spoken = protocol::json::to_integer(protocol::json::member(units, "spoken")).value();
  CHECK(answered > 3);
  CHECK(spoken == answered / 3);
  CHECK(protocol::json::to_integer(protocol::json::member(root, "turns")) == spoken);
  CHECK_THAT(read(folder / "plot.svg"), Catch::StartsWith("<svg "));
}

TEST_CASE("a run in a dialect of OpenAI's is judged by its rules") {
  const scratch folder;
  const auto wav = folder / "a.wav";
  std::ofstream(wav, std::ios::binary) << protocol::write_wav(std::vector<float>(40'000, 0.1f), 16'000);
  std::ostringstream out, err;
  {
    scripted_server server([](scripted_server::peer& client) {
      const auto started = [](const char* id) {
        return std::string(R"({"type":"session.started","event_id":")") + id +
               R"(","session":{"id":"sess_1","expires_at":1,"model":"m","status":"active","instructions":"",)"
               R"("audio":{"format":{"type":"audio/pcm","rate":24000}},"delegation":{}}})";
      };
      client.receive();
      client.send(started("event_1"));
      client.send(started("event_2")); // a session starts once; then the connection is closed
    });
    load_options options{.url = server.url(), .dialect = "live", .sessions = 1, .seconds = 60, .wavs = {wav}};
    load(options, out, err);
  }
  CHECK_THAT(out.str(), Catch::Contains("rules broken        in 1 sessions, of 2 events"));
  CHECK_THAT(out.str(), Catch::Contains("violation:a_second_start 1"));
}

TEST_CASE("wrong options of a load are status 2 and named") {
  std::ostringstream out;
  const auto refused = [&](load_options options) {
    std::ostringstream err;
    CHECK(load(options, out, err) == 2);
    return err.str();
  };
  CHECK_THAT(refused({.url = "ftp://host"}), Catch::Contains("--url"));
  CHECK_THAT(refused({.url = "ws://host", .modes = {"radio"}}), Catch::Contains("--mode: radio"));
  CHECK_THAT(refused({.url = "ws://host", .dialect = "klingon"}), Catch::Contains("--dialect: klingon"));
  CHECK_THAT(refused({.url = "ws://host", .dialect = "live", .modes = {"chat"}}), Catch::Contains("--mode"));
  CHECK_THAT(refused({.url = "ws://host", .sessions = 0}), Catch::Contains("--sessions"));
  CHECK_THAT(refused({.url = "ws://host", .seconds = 0}), Catch::Contains("--seconds"));
  CHECK_THAT(refused({.url = "ws://host", .seconds = std::numeric_limits<double>::infinity()}),
             Catch::Contains("--seconds"));
  CHECK_THAT(refused({.url = "ws://host", .ramp = std::nan("")}), Catch::Contains("--ramp"));
  CHECK_THAT(refused({.url = "ws://host", .habits = {.pause = -1}}), Catch::Contains("--pause"));
  CHECK_THAT(refused({.url = "ws://host", .habits = {.jitter = -1}}), Catch::Contains("--jitter"));
  CHECK_THAT(refused({.url = "ws://host", .habits = {.barge_in = 2}}), Catch::Contains("--barge-in"));
  CHECK_THAT(refused({.url = "ws://host", .habits = {.listening = 1.5}}), Catch::Contains("--listening"));
  CHECK_THAT(refused({.url = "ws://host", .habits = {.speak_tokens = -1}}), Catch::Contains("--speak-tokens"));
  CHECK_THAT(refused({.url = "ws://host", .wavs = {"/nowhere.wav"}}),
             Catch::Contains("--wav: cannot read /nowhere.wav"));
  CHECK(out.str().empty());
}
