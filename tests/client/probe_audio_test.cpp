#include "client/probe.hpp"
#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/server_codec.hpp"
#include "protocol/media/wav.hpp"
#include "tests/client/scripted_server.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

using namespace parley::client;
namespace protocol = parley::protocol;

namespace {

/// A sine as a WAV file that is removed when the test ends.
class wav_file {
public:
  wav_file(double seconds, std::uint32_t rate)
      : path_(std::filesystem::temp_directory_path() / "parley_probe_test.wav") {
    std::vector<float> samples(static_cast<std::size_t>(seconds * rate));
    for (std::size_t i = 0; i < samples.size(); ++i) samples[i] = 0.5f * std::sin(0.05f * static_cast<float>(i));
    std::ofstream(path_, std::ios::binary) << protocol::write_wav(samples, rate);
  }
  ~wav_file() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

private:
  std::filesystem::path path_;
};

std::string must_receive(scripted_server::peer& client) {
  auto frame = client.receive();
  if (!frame) throw std::runtime_error("the probe left");
  return std::move(*frame);
}

protocol::envelope must_peek(const std::string& frame) {
  auto found = protocol::peek(frame);
  if (!found) throw std::runtime_error("the probe sent no event: " + frame.substr(0, 200));
  return std::move(*found);
}

struct outcome {
  int status = 0;
  std::string out;
  std::string err;
};

outcome run(const audio_probe_options& options) {
  std::ostringstream out, err;
  const int status = probe_audio(options, out, err);
  return {status, out.str(), err.str()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A server that accepts units and answers every third one with speech.
struct audio_server {
  protocol::dialect spoken = protocol::dialect::current;
  std::optional<protocol::init_event> init;
  std::vector<protocol::append_event> appends;
  std::string close_reason;
  std::string target;
  std::size_t most_ahead = 0;

  protocol::encode_context context() const { return {.spoken = spoken, .session_id = "sess_test"}; }

  void start(scripted_server::peer& client) {
    target = client.target();
    client.send(protocol::encode(protocol::session_queue_done{}, {}));
    const std::string frame = must_receive(client);
    const auto event = must_peek(frame);
    spoken = event.type == protocol::client_event_type::session_update ? protocol::dialect::legacy
                                                                       : protocol::dialect::current;
    auto decoded = spoken == protocol::dialect::legacy ? decode_session_update(event, protocol::mode::audio)
                                                       : decode_session_init(event, protocol::mode::audio);
    if (!decoded) throw std::runtime_error(decoded.error().message);
    init = std::move(*decoded);
    client.send(protocol::encode(protocol::session_created{}, context()));
  }

  void answer(scripted_server::peer& client, std::size_t unit) const {
    protocol::output_delta delta;
    delta.input_id = "input_" + std::to_string(unit);
    delta.measured.kv_cache_length = 100;
    if (unit % 3 == 0) {
      delta.kind = protocol::output_kind::text;
      delta.text = "word\n" + std::to_string(unit);
      if (spoken == protocol::dialect::current) {
        client.send(protocol::encode(delta, context()));
        delta.kind = protocol::output_kind::audio;
        delta.text.clear();
      }
      delta.audio = std::make_shared<const std::vector<float>>(240, 0.1f);
    }
    delta.measured.wall_clock_ms = 5;
    delta.measured.dropped_chunks = 0;
    client.send(protocol::encode(delta, context()));
  }

  /// Confirms what should be the client's goodbye.
  void end(scripted_server::peer& client) const {
    must_receive(client);
    client.send(protocol::encode(protocol::session_closed{.reason = "user_stop", .total = {}}, context()));
  }

  /// Runs until the client closes.
  void serve(scripted_server::peer& client) {
    start(client);
    for (;;) {
      const std::string frame = must_receive(client);
      const auto event = must_peek(frame);
      if (event.type == protocol::client_event_type::session_close) {
        close_reason = decode_close(event).reason;
        break;
      }
      auto append = decode_append(event, protocol::mode::audio, 4000);
      if (!append) throw std::runtime_error(append.error().message);
      appends.push_back(std::move(*append));
      answer(client, appends.size());
    }
    client.send(protocol::encode(protocol::session_closed{.reason = close_reason, .total = {}}, context()));
  }
};

} // namespace

TEST_CASE("a probe tells a session from created to closed") {
  const wav_file spoken(3.4, 44'100);
  audio_server server;
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(),
               .wav = spoken.path(),
               .fast = true,
               .system_prompt = "Be \"brief\".",
               .force_listen_count = 2,
               .greedy = true,
               .seed = 7,
               .voice = spoken.path()});
  }
  CHECK(got.status == 0);
  CHECK(got.err.empty());
  CHECK(server.target == "/v1/realtime?mode=audio");
  CHECK(server.init->system_prompt == "Be \"brief\".");
  CHECK(server.init->config.force_listen_count == 2);
  CHECK(server.init->config.sampling.greedy);
  CHECK(server.init->seed == 7u);
  CHECK(server.init->voice->size() == Approx(3.4 * 16'000).margin(2));
  CHECK(server.init->tts_voice == server.init->voice);
  REQUIRE(server.appends.size() == 4); // the last second is padded
  for (const auto& append : server.appends) CHECK(append.samples->size() == 16'000);
  CHECK(server.appends[3].samples->back() == 0.0f);
  CHECK(server.close_reason == "user_stop");

  CHECK(has(got.out, "session.created     sess_test\n"));
  CHECK(has(got.out, "   1  listen"));
  CHECK(has(got.out, "   3  speak"));
  CHECK(has(got.out, " ms  word 3\n"));
  CHECK(has(got.out, "session.closed      user_stop\n"));
  CHECK(has(got.out, "units               4, 1 spoken, 3 listened\n"));
  CHECK(has(got.out, "latency             p50 "));
  CHECK(has(got.out, "first text          "));
  CHECK(has(got.out, " ms after second 3 was sent\nfirst sound         "));
  CHECK(has(got.out, "sound               0.01 s heard of 0.01 s, real-time factor "));
  CHECK_FALSE(has(got.out, "saved"));
  CHECK(got.out.find("   1  listen") < got.out.find("   2  listen"));
  CHECK(got.out.find("   4  listen") < got.out.find("session.closed"));
}

TEST_CASE("a probe speaks the legacy dialect") {
  const wav_file spoken(3, 16'000);
  audio_server server;
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(), .wav = spoken.path(), .fast = true, .legacy = true});
  }
  CHECK(got.status == 0);
  CHECK(server.spoken == protocol::dialect::legacy);
  CHECK(server.appends.size() == 3);
  CHECK(has(got.out, "   3  speak"));
  CHECK(has(got.out, "units               3, 1 spoken, 2 listened\n"));
}

TEST_CASE("what is heard is saved in its place in time") {
  const wav_file spoken(4, 16'000);
  const auto path = (std::filesystem::temp_directory_path() / "parley_probe_heard.wav").string();
  const bool legacy = GENERATE(false, true);
  audio_server server;
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(), .wav = spoken.path(), .fast = true, .legacy = legacy, .save = path});
  }
  CHECK(got.status == 0);
  CHECK(has(got.out, "saved               " + path + ", 4.00 s\n"));
  std::ifstream file(path, std::ios::binary);
  const auto heard = protocol::read_wav(std::string(std::istreambuf_iterator<char>(file), {}), {.rate = 24'000});
  std::filesystem::remove(path);
  REQUIRE(heard);
  REQUIRE(heard->size() == 4 * 24'000);
  const auto loud = [&](std::size_t at) { return (*heard)[at] > 0.05f; };
  constexpr std::size_t begin = 3 * 24'000 + 4'800; // the answer to the third second, delayed by the player's buffer
  CHECK_FALSE(loud(begin - 1));
  CHECK(loud(begin));
  CHECK(loud(begin + 239));
  CHECK_FALSE(loud(begin + 240));
}

TEST_CASE("a file that can't be written is told and is status 1") {
  const wav_file spoken(1, 16'000);
  audio_server server;
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(), .wav = spoken.path(), .fast = true, .save = "/nowhere/heard.wav"});
  }
  CHECK(got.status == 1);
  CHECK(has(got.out, "sound               nothing was heard\n"));
  CHECK(got.err == "parley probe: --save: cannot write /nowhere/heard.wav\n");
}

TEST_CASE("without --fast a unit is sent each second, answered or not") {
  const wav_file spoken(2, 16'000);
  audio_server server;
  std::chrono::steady_clock::duration between{};
  outcome got;
  {
    scripted_server scripted([&](auto& client) {
      server.start(client);
      must_receive(client);
      const auto first = std::chrono::steady_clock::now();
      must_receive(client);
      between = std::chrono::steady_clock::now() - first;
      server.answer(client, 1);
      server.answer(client, 2);
      server.end(client);
    });
    got = run({.url = scripted.url(), .wav = spoken.path()});
  }
  CHECK(got.status == 0);
  CHECK(between > std::chrono::milliseconds(800));
  CHECK(between < std::chrono::milliseconds(3000));
}

TEST_CASE("units that the server dropped are told") {
  const wav_file spoken(2, 16'000);
  audio_server server;
  outcome got;
  {
    scripted_server scripted([&](auto& client) {
      server.start(client);
      must_receive(client);
      must_receive(client);
      protocol::output_delta listen;
      listen.input_id = "input_2";
      listen.measured.wall_clock_ms = 3;
      listen.measured.dropped_chunks = 1;
      client.send(protocol::encode(listen, server.context()));
      server.end(client);
    });
    got = run({.url = scripted.url(), .wav = spoken.path()});
  }
  CHECK(got.status == 0);
  CHECK_FALSE(has(got.out, "   1  "));
  CHECK(has(got.out, "units               1, 0 spoken, 1 listened, 1 dropped\n"));
}

TEST_CASE("a server that answers a unit again and again gets no more than there is") {
  const wav_file spoken(2, 16'000);
  audio_server server;
  outcome got;
  {
    scripted_server scripted([&](auto& client) {
      server.start(client);
      must_receive(client);
      for (int i = 0; i < 5; ++i) server.answer(client, 1);
      must_receive(client);
      server.answer(client, 2);
      server.end(client);
    });
    got = run({.url = scripted.url(), .wav = spoken.path(), .fast = true});
  }
  CHECK(got.status == 0);
}

TEST_CASE("places in the queue are shown while waiting") {
  const wav_file spoken(1, 16'000);
  audio_server server;
  outcome got;
  {
    scripted_server scripted([&](auto& client) {
      client.send(protocol::encode(protocol::session_queued{{2, 14.6, "ticket_1", 5}}, {}));
      client.send(protocol::encode(protocol::session_queue_update{{1, 3, "ticket_1", 4}}, {}));
      server.serve(client);
    });
    got = run({.url = scripted.url(), .wav = spoken.path(), .fast = true});
  }
  CHECK(got.status == 0);
  CHECK(has(got.out, "session.queued      position 2 of 5, about 15 s\nsession.queue_update"));
  CHECK(has(got.out, "position 1 of 4, about 3 s\nsession.created"));
}

TEST_CASE("what goes wrong is one line and status 1") {
  const wav_file spoken(2, 16'000);
  audio_server server;
  std::function<void(scripted_server::peer&)> script;
  std::string why;
  SECTION("an error event") {
    why = "queue_full: come back later";
    script = [](auto& client) {
      client.send(protocol::encode(protocol::error_event{protocol::error_code::queue_full, "come back\nlater"}, {}));
      client.close(1013);
    };
  }
  SECTION("the server ends the session") {
    why = "the server ended the session";
    script = [&](auto& client) {
      server.start(client);
      client.send(protocol::encode(protocol::session_closed{.reason = "timeout", .total = {}}, server.context()));
    };
  }
  SECTION("the connection breaks") {
    why = "the connection broke";
    script = [&](auto& client) {
      server.start(client);
      client.vanish();
    };
  }
  SECTION("the server only closes") {
    why = "with code 1011";
    script = [&](auto& client) { client.close(1011); };
  }
  SECTION("no event at all") {
    why = "not an event";
    script = [&](auto& client) {
      client.send("hello");
      client.receive();
    };
  }
  outcome got;
  {
    scripted_server scripted(script);
    got = run({.url = scripted.url(), .wav = spoken.path(), .fast = true});
  }
  CHECK(got.status == 1);
  CHECK(has(got.err, why));
  CHECK(std::count(got.err.begin(), got.err.end(), '\n') == 1);
}

TEST_CASE("nobody at that address") {
  const wav_file spoken(1, 16'000);
  const auto path = std::filesystem::temp_directory_path() / "parley_probe_earlier.wav";
  std::ofstream(path) << "heard before";
  const outcome got = run({.url = "http://127.0.0.1:1", .wav = spoken.path(), .save = path.string()});
  CHECK(got.status == 1);
  CHECK(has(got.err, "cannot connect to 127.0.0.1:1"));
  CHECK(std::filesystem::file_size(path) == 12); // nothing was heard that could replace it
  std::filesystem::remove(path);
}

TEST_CASE("wrong options are status 2 and named") {
  const wav_file spoken(1, 16'000);
  CHECK(has(run({.url = "gopher://host", .wav = spoken.path()}).err, "--url"));
  CHECK(run({.url = "gopher://host", .wav = spoken.path()}).status == 2);
  CHECK(has(run({.url = "http://host", .wav = "/nowhere.wav"}).err, "--wav"));
  CHECK(has(run({.url = "http://host", .wav = "tests/CMakeLists.txt"}).err, "--wav"));
  CHECK(has(run({.url = "http://host", .wav = spoken.path(), .voice = "/nowhere.wav"}).err, "--voice"));
  CHECK(has(run({.url = "http://host"}).err, "--wav is missing"));
  CHECK(run({.url = "http://host", .wav = "/nowhere.wav"}).status == 2);
}
