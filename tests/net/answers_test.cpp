#include "net/routes/routes.hpp"
#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <random>
#include <vector>

using namespace parley;
using namespace parley::net;

// Large answers: recordings, the default voice, and what operators watch.

namespace {

/// One file of one recording, for everybody.
class one_recording final : public actors::recordings_api {
public:
  explicit one_recording(std::string_view content) : path_(folder_.write("input.wav", content)) {}

  void list(actors::principal, std::size_t, std::function<void(std::string)> done) override {
    done("[" + std::string(listed, ' ') + "]");
  }
  void fetch(std::string, std::string file, actors::principal,
             std::function<void(actors::recording_answer, std::shared_ptr<const base::open_file>)> done) override {
    std::error_code why;
    auto opened = base::open_file::open(folder_.path() / file, why);
    if (!opened) return done(actors::recording_answer::unknown, nullptr);
    ++opened_files;
    done(actors::recording_answer::done, std::make_shared<const base::open_file>(std::move(*opened)));
  }
  void remove(std::string, actors::principal, std::function<void(actors::recording_answer)> done) override {
    done(actors::recording_answer::failed);
  }

  void shrink() const { std::filesystem::resize_file(path_, 10); }

  std::size_t listed = 0;
  int opened_files = 0;

private:
  tests::temporary_folder folder_;
  std::filesystem::path path_;
};

std::string noise(std::size_t bytes) {
  std::mt19937 random(1);
  std::string text(bytes, '\0');
  for (auto& each : text) each = static_cast<char>(random());
  return text;
}

constexpr std::string_view path = "/sessions/a/input.wav";
constexpr std::string_view ask = "GET /sessions/a/input.wav HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A server that lets each client have two pieces of files at a time, and all together three.
struct tight_fixture : server_fixture {
  tight_fixture() : server_fixture(tight(), 1), recording(std::string(8u << 20, 'x')) { gateway.recorded = &recording; }
  static connection_limits tight() {
    connection_limits limits;
    limits.answer_bytes = 3 * reply_body::piece_bytes;
    limits.answer_bytes_per_client = 2 * reply_body::piece_bytes;
    return limits;
  }

  /// Asks for the recording and reads only the beginning of the answer.
  wire_client slow_reader() {
    wire_client client = connect();
    client.shrink_receive_buffer();
    client.send(ask);
    CHECK(client.read_bytes(15) == "HTTP/1.1 200 OK");
    return client;
  }

  one_recording recording;
};

} // namespace

TEST_CASE("a recording arrives whole, piece by piece, and the connection goes on") {
  const auto bytes = GENERATE(std::size_t{0}, std::size_t{1}, reply_body::piece_bytes - 1, reply_body::piece_bytes,
                              reply_body::piece_bytes + 1, std::size_t{1'000'003});
  INFO(bytes);
  const auto content = noise(bytes);
  one_recording recording(content);
  server_fixture fixture;
  fixture.gateway.recorded = &recording;
  wire_client client = fixture.connect();
  for (int i = 0; i < 2; ++i) {
    const auto got = client.get(path);
    CHECK(got.status == 200);
    CHECK(got.header("Content-Type") == "audio/wav");
    CHECK(got.body == content);
  }
  const auto head = client.get(path, "HEAD");
  CHECK(head.header("Content-Length") == std::to_string(bytes));
  CHECK(client.get("/health").status == 200);
  CHECK(client.get("/sessions/a/output.wav").status == 404);
}

TEST_CASE("a recording that shrinks while it is sent ends the connection, not the server") {
  tight_fixture fixture;
  wire_client client = fixture.slow_reader();
  fixture.recording.shrink();
  std::size_t read = 0;
  while (const auto more = client.skip(100'000)) read += more;
  CHECK(read < 8u << 20);
  CHECK(fixture.empties());
  CHECK(fixture.connect().get("/health").status == 200);
}

TEST_CASE("whoever does not read its answers gets no more of them, before anything is opened") {
  tight_fixture fixture;
  wire_client patient = fixture.connect();
  std::vector<wire_client> slow;
  for (int i = 0; i < 2; ++i) slow.push_back(fixture.slow_reader());
  const auto refused = patient.get(path);
  CHECK(refused.status == 503);
  CHECK(refused.header("Retry-After") == "1");
  CHECK(refused.body.find("too_many_answers") != std::string::npos);
  CHECK(fixture.recording.opened_files == 2);
  for (const char* watched : {"/sessions", "/status", "/metrics", "/workers", "/api/queue"})
    CHECK(patient.get(watched).status == 503);
  CHECK(patient.get("/health").status == 200);
  CHECK(patient.get("/ready").status == 200);
  CHECK(patient.get("/").status == 200);
  slow.pop_back();
  CHECK(fixture.comes_to(2));
  CHECK(patient.get("/sessions").status == 200);
}

TEST_CASE("an answer in memory counts while it waits for its reader") {
  tight_fixture fixture;
  fixture.recording.listed = 2 * reply_body::piece_bytes - 1000;
  wire_client patient = fixture.connect();
  CHECK(patient.get("/sessions").status == 200);
  fixture.recording.listed = 2 * reply_body::piece_bytes + 1;
  CHECK(patient.get("/sessions").status == 503); // more than a client may have at all
}

TEST_CASE("all readers of the default voice share one answer, as long as it is the voice") {
  echo_gateway gateway;
  meters counted;
  named_voice voice{"a.wav", std::make_shared<const std::vector<float>>(100'000, 0.5f)};
  const auto table = make_routes({gateway, [&] { return voice; }, "m", counted, [] { return 0; }});
  const auto answer = [&] {
    http_request request;
    request.method = "GET";
    request.path = "/api/default_ref_audio";
    http_reply got;
    table.route(request, [&](http_reply reply) { got = std::move(reply); });
    return got;
  };
  const auto first = answer();
  const auto second = answer();
  CHECK(first.status == 200);
  CHECK(first.body.size() > 500'000);
  CHECK(first.body.text().data() == second.body.text().data());
  CHECK(first.body.held_bytes() == 0);
  voice.samples = std::make_shared<const std::vector<float>>(10, 0.5f);
  CHECK(answer().body.size() < 1000);
  CHECK(first.body.size() > 500'000);
}
