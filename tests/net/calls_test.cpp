#include "net/call/media_transport.hpp"
#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

// POST /v1/realtime/calls, up to where a call begins; tests/e2e has calls.
using namespace parley::net;
using nlohmann::json;
using parley::tests::temporary_folder;

namespace {

struct call_fixture : server_fixture {
  wire_client::response post(std::string_view path, const std::string& body, const std::string& headers = "") {
    return connect().get(path, "POST", headers, body);
  }
};

struct key_fixture : call_fixture {
  key_fixture() {
    options.keys_file = folder.write("keys", "ann 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n");
  }
  temporary_folder folder;
};

const bool built_in = make_media_library({"127.0.0.1", 1}) != nullptr;
const std::string sdp = "Content-Type: application/sdp\r\n";
const std::string as_ann = "Authorization: Bearer alpha\r\n";

json error_of(const wire_client::response& got) {
  return json::parse(got.body)["error"];
}

/// What a client without any network would offer.
const std::string offer =
    "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"
    "c=IN IP4 0.0.0.0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
    "a=fingerprint:sha-256 "
    "0F:74:31:25:CB:A2:13:EC:28:6F:6D:2C:61:FF:5D:C2:BC:B9:DB:3D:98:14:8D:1A:BB:EA:33:0C:A4:60:A8:8E\r\n"
    "a=setup:actpass\r\na=mid:0\r\na=sendrecv\r\na=rtcp-mux\r\na=rtpmap:111 opus/48000/2\r\n";

} // namespace

TEST_CASE("without WebRTC there are no calls, and never SIP") {
  call_fixture fixture;
  fixture.options.webrtc = false;
  for (const auto* path :
       {"/v1/realtime/calls", "/v1/realtime/calls/rtc_1/accept", "/v1/realtime/calls/rtc_1/hangup"}) {
    const auto got = fixture.post(path, offer, sdp);
    CHECK(got.status == 501);
    CHECK(error_of(got)["type"] == "server_error");
  }
}

TEST_CASE("a call is answered with SDP and where it is, and can be hung up") {
  if (!built_in) return;
  call_fixture fixture;
  const auto got = fixture.post("/v1/realtime/calls", offer, sdp);
  REQUIRE(got.status == 201);
  CHECK(got.header("Content-Type") == "application/sdp");
  CHECK(got.body.starts_with("v=0\r\n"));
  CHECK(got.body.find("a=rtpmap:111 opus/48000/2") != std::string::npos);
  CHECK(got.body.find("127.0.0.1 " + std::to_string(fixture.start().port()) + " typ host") != std::string::npos);
  const auto where = got.header("Location");
  CHECK(where.starts_with("/v1/realtime/calls/rtc_"));
  CHECK(fixture.post(where + "/accept", "{}").status == 501);
  CHECK(fixture.post(where + "/hangup", "").status == 200);
  CHECK(fixture.empties());
  CHECK(fixture.post(where + "/hangup", "").status == 404);
}

TEST_CASE("who may not call is told so before the offer is read") {
  if (!built_in) return;
  key_fixture fixture;
  CHECK(fixture.post("/v1/realtime/calls", "no offer", sdp).status == 401);
  CHECK(fixture.post("/v1/realtime/calls", "no offer", sdp + as_ann).status == 400);
  CHECK(fixture.post("/v1/realtime/calls", std::string(200'000, 'x'), sdp + as_ann).status == 413);
  const auto secret = fixture.post("/v1/realtime/client_secrets", "{}", as_ann);
  const std::string browser = "Authorization: Bearer " + json::parse(secret.body)["value"].get<std::string>() + "\r\n";
  const auto got = fixture.post("/v1/realtime/calls", offer, sdp + browser);
  CHECK(got.status == 201);
  CHECK(fixture.post("/v1/realtime/calls/rtc_x/hangup", "").status == 401);
}

TEST_CASE("what is wrong with a call is told as OpenAI does") {
  if (!built_in) return;
  call_fixture fixture;
  const auto bad = fixture.post("/v1/realtime/calls", "v=0\r\n", sdp);
  CHECK(bad.status == 400);
  CHECK(error_of(bad)["code"] == "invalid_offer");
  CHECK(error_of(bad)["param"] == "sdp");
  CHECK(error_of(bad)["type"] == "invalid_request_error");
  CHECK(error_of(fixture.post("/v1/realtime/calls", offer, "Content-Type: text/plain\r\n"))["code"] ==
        "unsupported_content_type");
  CHECK(fixture.empties());
}

TEST_CASE("calls count among the sessions of their client") {
  if (!built_in) return;
  call_fixture fixture;
  fixture.options.admission.sessions_per_address = 2;
  CHECK(fixture.post("/v1/realtime/calls", offer, sdp).status == 201);
  CHECK(fixture.post("/v1/realtime/calls", offer, sdp).status == 201);
  CHECK(fixture.post("/v1/realtime/calls", offer, sdp).status == 429);
  fixture.start().stop(std::chrono::milliseconds(0)); // with calls that never came about
}
