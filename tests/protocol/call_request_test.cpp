#include "protocol/call/call_request.hpp"

#include "protocol/call/answer.hpp"

#include <catch2/catch.hpp>

#include <string>

// POST /v1/realtime/calls: what it may ask for.
using namespace parley::protocol::call;

namespace {

const std::string sound =
    "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1\r\n"
    "m=audio 9 UDP/TLS/RTP/SAVPF 63 111\r\nc=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
    "a=fingerprint:sha-256 AA:BB\r\na=setup:actpass\r\na=mid:0\r\na=sendrecv\r\na=rtpmap:63 red/48000/2\r\n"
    "a=rtpmap:111 opus/48000/2\r\na=candidate:1 1 udp 2113937151 8a2f.local 51000 typ host\r\n"
    "a=candidate:2 1 udp 2113937151 10.0.0.1 22 typ host\r\na=end-of-candidates\r\n";
const std::string channels = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:1\r\na=sctp-port:5000\r\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), by);
}

std::string refused(const std::string& sdp) {
  const auto read = read_offer(sdp);
  return read ? "" : read.error().code + " " + read.error().param;
}

std::string part(const std::string& name, const std::string& content, const std::string& more = "") {
  return "--line\r\nContent-Disposition: form-data; name=\"" + name + "\"" + more +
         "\r\nContent-Type: text/plain\r\n\r\n" + content + "\r\n";
}

} // namespace

TEST_CASE("an offer says where its sound is, and its candidates are left out") {
  const auto read = read_offer(sound + channels);
  REQUIRE(read);
  CHECK(read->mid == "0");
  CHECK(read->payload_type == 111);
  CHECK(read->sdp.find("candidate") == std::string::npos);
  CHECK(read->sdp.find("m=application") != std::string::npos);
  CHECK(read_offer(sound)); // nobody has to open a data channel
}

TEST_CASE("an offer that is no call is refused by name") {
  const std::string wrong = "invalid_offer sdp";
  CHECK(refused("") == wrong);
  CHECK(refused("hello") == wrong);
  CHECK(refused(channels) == wrong);
  CHECK(refused("v=0\r\n" + channels) == wrong);
  CHECK(refused(sound + channels + channels) == wrong);
  CHECK(refused(sound + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n") == wrong);
  CHECK(refused(sound + "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n") == wrong);
  CHECK(refused(replaced(sound, "opus", "PCMU")) == wrong);
  CHECK(refused(replaced(sound, ":111 opus", ":999999999999 opus")) == wrong);
  CHECK(refused(replaced(sound, "a=mid:0\r\n", "")) == wrong);
  CHECK(refused(replaced(sound, "a=mid:0", "a=mid:" + std::string(33, 'x'))) == wrong);
  CHECK(refused(replaced(sound, "a=ice-ufrag:abcd\r\n", "")) == wrong);
  CHECK(refused(replaced(sound, "a=fingerprint:sha-256 AA:BB\r\n", "")) == wrong);
  CHECK(refused(replaced(sound, "s=-", std::string("s=\0", 3))) == wrong);
  CHECK(refused(sound + "a=x:" + std::string(5'000, 'y') + "\r\n") == wrong);
  std::string many = sound;
  for (int i = 0; i < 700; ++i) many += "a=x:y\r\n";
  CHECK(refused(many) == wrong);
  CHECK(refused(sound + std::string(most_offer_bytes, ' ')) == wrong);
}

TEST_CASE("an answer names the addresses that the server is reached at, and no others") {
  const std::string own = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 10.0.0.7\r\na=mid:0\r\n"
                          "a=candidate:1 1 UDP 2122317823 10.0.0.7 8006 typ host\r\n"
                          "a=candidate:2 1 UDP 2122317567 fd00::7 8006 typ host\r\na=end-of-candidates\r\n";
  CHECK(told_at(own, {}, 8006) == own);
  const std::vector<std::string> here{"203.0.113.5", "2001:db8::5"};
  CHECK(told_at(own, here, 8006) ==
        "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\nc=IN IP4 203.0.113.5\r\na=mid:0\r\n"
        "a=candidate:1 1 UDP 2130706431 203.0.113.5 8006 typ host\r\n"
        "a=candidate:2 1 UDP 2130706175 2001:db8::5 8006 typ host\r\na=end-of-candidates\r\n");
}

TEST_CASE("a body of application/sdp is an offer") {
  const auto read = read_call_request("application/sdp; charset=utf-8", sound + channels);
  REQUIRE(read);
  CHECK_FALSE(read->session);
  CHECK(read_call_request("Application/SDP", sound));
  CHECK(read_call_request("application/json", sound).error().code == "unsupported_content_type");
  CHECK(read_call_request("", sound).error().code == "unsupported_content_type");
}

TEST_CASE("a form has the offer and what the session begins with") {
  const std::string type = "multipart/form-data; boundary=line";
  const auto session = std::string(R"({"type":"realtime","instructions":"Be brief."})");
  const auto body = part("sdp", sound + channels, "; filename=\"upload\"") + part("session", session) + "--line--\r\n";
  for (const auto& each : {type, std::string("Multipart/Form-Data; Boundary=\"line\"")}) {
    const auto read = read_call_request(each, body);
    REQUIRE(read);
    CHECK(read->what.payload_type == 111);
    CHECK(read->session == session);
  }
  const auto alone = read_call_request(type, part("sdp", sound) + "--line--");
  REQUIRE(alone);
  CHECK_FALSE(alone->session);
}

TEST_CASE("a form that is broken, or asks for what there is not, is refused") {
  const std::string type = "multipart/form-data; boundary=line";
  const auto code = [&](const std::string& body, const std::string& of = "multipart/form-data; boundary=line") {
    const auto read = read_call_request(of, body);
    return read ? std::string() : read.error().code + " " + read.error().param;
  };
  const auto good = part("sdp", sound);
  CHECK(code("") == "invalid_body ");
  CHECK(code(good) == "invalid_body "); // has no end
  CHECK(code(good + "--line--", "multipart/form-data") == "invalid_body ");
  CHECK(code(good + "--line--", "multipart/form-data; boundary=" + std::string(71, 'x')) == "invalid_body ");
  CHECK(code("--line--") == "missing_required_parameter sdp");
  CHECK(code(part("session", "{}") + "--line--") == "missing_required_parameter sdp");
  CHECK(code(good + part("session", "[]") + "--line--") == "invalid_json session");
  CHECK(code(good + part("session", "\xff{}") + "--line--") == "invalid_json session");
  CHECK(code(good + part("session", R"({"type":"transcription"})") + "--line--") != "");
  CHECK(code(good + part("session", R"({"no_such_wish":1})") + "--line--") == "unknown_parameter session.no_such_wish");
  CHECK(code(good + part("session", "{\"instructions\":\"" + std::string(most_session_bytes, 'x') + "\"}") +
             "--line--") == "invalid_value session");
  std::string many;
  for (int i = 0; i < 6; ++i) many += part("x", "y");
  CHECK(code(many + "--line--") == "invalid_body ");
}
