#include "client/probe.hpp"
#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/server_codec.hpp"
#include "tests/client/scripted_server.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>

using namespace parley::client;
namespace protocol = parley::protocol;

namespace {

struct outcome {
  int status = 0;
  std::string out;
  std::string err;
};

outcome run(const chat_probe_options& options) {
  std::ostringstream out, err;
  const int status = probe_chat(options, out, err);
  return {status, out.str(), err.str()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Answers one turn with the given deltas.
struct chat_server {
  std::vector<std::string> deltas;
  std::string reason = "turn_end";
  bool speaks = true; ///< if requested: half a second after each delta, or everything with the whole answer
  std::string target;
  std::optional<protocol::chat_append_event> asked;
  std::string close_reason;

  void serve(scripted_server::peer& client) {
    const protocol::encode_context context{.spoken = protocol::dialect::current, .session_id = "sess_test"};
    const auto receive = [&] {
      auto frame = client.receive();
      if (!frame) throw std::runtime_error("the probe left");
      return std::move(*frame);
    };
    target = client.target();
    client.send(protocol::encode(protocol::session_queue_done{}, {}));
    const std::string init = receive();
    if (!decode_session_init(protocol::peek(init).value(), protocol::mode::chat)) throw std::runtime_error("bad init");
    protocol::session_created created;
    created.turn_based = true;
    client.send(protocol::encode(created, context));
    const std::string append = receive();
    asked = decode_chat_append(protocol::peek(append).value()).value();
    std::string whole;
    for (const auto& text : deltas) {
      whole += text;
      protocol::output_delta delta;
      delta.kind = protocol::output_kind::text;
      delta.text = text;
      if (!asked->streaming) continue;
      client.send(protocol::encode(delta, context));
      if (!asked->tts || !speaks) continue;
      delta.kind = protocol::output_kind::audio;
      delta.text.clear();
      delta.audio = std::make_shared<const std::vector<float>>(12'000, 0.5f);
      client.send(protocol::encode(delta, context));
    }
    protocol::response_done done;
    done.text = whole;
    if (asked->tts && speaks && !asked->streaming)
      done.audio = std::make_shared<const std::vector<float>>(12'000 * deltas.size(), 0.5f);
    done.reason = reason;
    client.send(protocol::encode(done, context));
    const std::string close = receive();
    close_reason = decode_close(protocol::peek(close).value()).reason;
    client.send(protocol::encode(protocol::session_closed{.reason = close_reason, .total = {}}, context));
  }
};

std::string text_of(const protocol::message& from) {
  return std::get<protocol::text_item>(from.content.at(0)).text;
}

} // namespace

TEST_CASE("deltas are streamed and the end is told") {
  chat_server server;
  server.deltas = {"Hel", "lo\x1b[2J", " you\n"};
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(),
               .prompt = "Say \"hello\"",
               .system = "Be polite.",
               .max_new_tokens = 16,
               .greedy = true,
               .seed = 3});
  }
  CHECK(got.status == 0);
  CHECK(got.err.empty());
  CHECK(server.target == "/v1/realtime?mode=chat");
  REQUIRE(server.asked->messages.size() == 2);
  CHECK(server.asked->messages[0].from == protocol::role::system);
  CHECK(text_of(server.asked->messages[0]) == "Be polite.");
  CHECK(text_of(server.asked->messages[1]) == "Say \"hello\"");
  CHECK(server.asked->max_new_tokens == 16);
  CHECK(server.asked->do_sample == false);
  CHECK(server.asked->seed == 3u);
  CHECK(server.asked->streaming);
  CHECK(server.close_reason == "turn_done");
  CHECK(got.out.find("Hello\uFFFD[2J you\n\nresponse.done       turn_end, first text ") == 0);
  CHECK(has(got.out, "session.closed      turn_done\n"));
}

TEST_CASE("without streaming the answer comes whole, once") {
  chat_server server;
  server.deltas = {"Hello ", "there."};
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(), .prompt = "hi", .stream = false});
  }
  CHECK(got.status == 0);
  CHECK_FALSE(server.asked->streaming);
  CHECK(server.asked->max_new_tokens == 256); // the server's default
  CHECK(got.out.find("Hello there.\nresponse.done       turn_end, whole answer ") == 0);
}

TEST_CASE("a spoken answer is saved") {
  const auto path = (std::filesystem::temp_directory_path() / "parley_chat_heard.wav").string();
  chat_server server;
  server.deltas = {"Hello ", "there."};
  const bool streaming = GENERATE(true, false);
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(), .prompt = "hi", .stream = streaming, .save = path});
  }
  CHECK(got.status == 0);
  CHECK(server.asked->tts);
  CHECK(has(got.out, "first sound "));
  CHECK(has(got.out, "sound               1.00 s, real-time factor 0."));
  CHECK(has(got.out, "saved               " + path + ", 1.00 s\n"));
  CHECK(std::filesystem::file_size(path) == 44 + 2 * 24'000);
  std::filesystem::remove(path);
}

TEST_CASE("an answer without sound is told and not saved") {
  const auto path = (std::filesystem::temp_directory_path() / "parley_chat_silent.wav").string();
  chat_server server;
  server.deltas = {"Hello."};
  server.speaks = false;
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(), .prompt = "hi", .save = path});
  }
  CHECK(got.status == 0);
  CHECK(has(got.out, "sound               nothing was heard\n"));
  CHECK_FALSE(std::filesystem::exists(path));
}

TEST_CASE("an answer that failed is status 1") {
  chat_server server;
  server.reason = "error";
  outcome got;
  {
    scripted_server scripted([&](auto& client) { server.serve(client); });
    got = run({.url = scripted.url(), .prompt = "hi"});
  }
  CHECK(got.status == 1);
  CHECK(has(got.out, "response.done       error"));
  CHECK(has(got.err, "incomplete"));
  CHECK(run({.url = "ws:host", .prompt = "hi"}).status == 2);
}
