#include "protocol/openai/realtime/client_secret.hpp"

#include "tests/protocol/live_driver.hpp"
#include "tests/protocol/realtime_driver.hpp"

#include <catch2/catch.hpp>

using namespace parley::protocol;
using namespace parley::protocol::openai;
using namespace parley::protocol::openai::realtime;
using namespace parley::protocol::speech;
using wire_json = nlohmann::json;

namespace {

std::string refusal(const std::string& body, secret_form form = secret_form::ga) {
  const auto read = read_secret_request(body, form, 1000);
  return read ? "" : read.error().code + " " + read.error().param;
}

} // namespace

TEST_CASE("a request for an ephemeral key may say how long and for what") {
  const auto plain = read_secret_request("", secret_form::ga, 1000);
  REQUIRE(plain);
  CHECK(plain->seconds == 600);
  CHECK(plain->session == "{}");
  const auto read = read_secret_request(R"({"expires_after":{"anchor":"created_at","seconds":7200},
      "session":{"type":"realtime","instructions":"Be brief."}})",
                                        secret_form::ga, 1000);
  REQUIRE(read);
  CHECK(read->seconds == 7200);
  CHECK(read->config.instructions == "Be brief.");
  const auto told = wire_json::parse(encode_secret(*read, secret_form::ga, "ek_1", 1'700'000'000, "sess_1"));
  CHECK(told["value"] == "ek_1");
  CHECK(told["expires_at"] == 1'700'000'000);
  CHECK(told["session"]["instructions"] == "Be brief.");
  CHECK(told["session"]["id"] == "sess_1");
}

TEST_CASE("the beta's route takes and returns a flat session") {
  const auto read = read_secret_request(
      R"({"model":"any","voice":"alloy","modalities":["text"],"client_secret":{"expires_after":{"seconds":60}}})",
      secret_form::beta, 1000);
  REQUIRE(read);
  CHECK(read->seconds == 60);
  CHECK_FALSE(read->config.audible);
  const auto told = wire_json::parse(encode_secret(*read, secret_form::beta, "ek_1", 5, "sess_1"));
  CHECK(told["client_secret"] == wire_json{{"value", "ek_1"}, {"expires_at", 5}});
  CHECK(told["modalities"] == wire_json{"text"});
  CHECK(told["voice"] == "alloy");
}

TEST_CASE("what is wrong with a request for an ephemeral key is named") {
  CHECK(refusal("[]") == "invalid_json ");
  CHECK(refusal("{") == "invalid_json ");
  CHECK(refusal("{\"session\":{\"instructions\":\"\xff\"}}") == "invalid_json ");
  CHECK(refusal(R"({"expires_after":{"seconds":9}})") == "invalid_value expires_after.seconds");
  CHECK(refusal(R"({"expires_after":{"seconds":7201}})") == "invalid_value expires_after.seconds");
  CHECK(refusal(R"({"expires_after":{"anchor":"later"}})") == "invalid_value expires_after.anchor");
  CHECK(refusal(R"({"session":7})") == "invalid_type session");
  CHECK(refusal(R"({"session":{"type":"transcription"}})") == "unsupported_session_type session.type");
  CHECK(refusal(R"({"session":{"audio":{"input":{"format":{"type":"mp3"}}}}})") ==
        "invalid_value session.audio.input.format");
  CHECK(refusal(R"({"session":{"instructions":")" + std::string(1000, 'x') + R"("}})") == "invalid_value session");
}

TEST_CASE("a session at the limit of nesting is refused where the beta's form would exceed it") {
  const auto nested = [](int depth) {
    const auto lists = static_cast<std::size_t>(depth - 1);
    return R"({"include":)" + std::string(lists, '[') + std::string(lists, ']') + "}";
  };
  CHECK(refusal(nested(31), secret_form::beta).empty());
  CHECK(refusal(nested(32), secret_form::beta) == "invalid_json session");
  CHECK(refusal(nested(33), secret_form::beta) == "invalid_json ");
}

TEST_CASE("a session begins with what its key says") {
  machine it({"any", true, {}, 0, R"({"type":"realtime","instructions":"Be brief.","output_modalities":["text"]})"}, {},
             [] { return 7; });
  const auto effects = it.start({});
  const auto& first = std::get<to_client>(effects.back());
  const auto session = wire_json::parse(first.frame)["session"];
  CHECK(session["instructions"] == "Be brief.");
  CHECK(session["output_modalities"] == wire_json{"text"});
  CHECK(session["model"] == "any");
  CHECK(with_defaults({}, "not json").instructions.empty());
}

TEST_CASE("a Live session takes from its key what its client leaves open") {
  const std::string session = R"({"instructions":"Be brief.","audio":{"output":{"voice":"marin"}}})";
  const auto told = [&](const std::string& start) {
    live::machine it({{}, 0, session}, {}, [n = std::uint64_t{0}]() mutable { return ++n; });
    it.start({});
    std::string prompt;
    for (auto& each : it.on_frame(R"({"type":"session.start","session":)" + start + "}", {}))
      if (const auto* said = std::get_if<parley::protocol::guest::to_session>(&each))
        prompt = std::get<parley::protocol::init_event>(said->event).system_prompt;
    return prompt;
  };
  CHECK(told(R"({"model":"any"})") == "Be brief.");
  CHECK(told(R"({"model":"any","instructions":"Be long."})") == "Be long.");
}
