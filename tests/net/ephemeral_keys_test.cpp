#include "net/access/ephemeral_keys.hpp"

#include "config/load.hpp"
#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <memory>

using namespace parley::net;
using nlohmann::json;
using parley::tests::temporary_folder;

namespace {

struct open_fixture : server_fixture {
  wire_client::response post(std::string_view path, const std::string& body) {
    return connect().get(path, "POST", "", body);
  }
};

/// A server that requires a key: "alpha" is ann's.
struct key_fixture : server_fixture {
  key_fixture() {
    options.keys_file = folder.write("keys", "ann 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n");
  }
  wire_client::response post(std::string_view path, const std::string& body, const std::string& headers = "") {
    return connect().get(path, "POST", headers, body);
  }
  std::string minted(const std::string& body = "{}") {
    const auto got = post("/v1/realtime/client_secrets", body, "Authorization: Bearer alpha\r\n");
    REQUIRE(got.status == 200);
    return json::parse(got.body)["value"];
  }
  temporary_folder folder;
};

std::string bearer_of(const std::string& key) {
  return "Authorization: Bearer " + key + "\r\n";
}

} // namespace

TEST_CASE("an ephemeral key says what was put into it, until it expires") {
  auto time = std::make_shared<std::int64_t>(1000);
  const ephemeral_keys keys([time] { return *time; });
  const auto key = keys.make({1600, "ann", R"({"instructions":"a\nb"})"});
  CHECK(key.starts_with("ek_"));
  CHECK(key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == key.npos);
  const auto read = keys.read(key);
  REQUIRE(read);
  CHECK(read->owner == "ann");
  CHECK(read->session == R"({"instructions":"a\nb"})");
  CHECK(read->expires_at == 1600);
  *time = 1599;
  CHECK(keys.read(key));
  *time = 1600;
  CHECK_FALSE(keys.read(key));
}

TEST_CASE("whatever is changed in an ephemeral key, it is none any more") {
  const ephemeral_keys keys([] { return 1000; }), others([] { return 1000; });
  const auto key = keys.make({1600, "", "{}"});
  CHECK(keys.read(key));
  CHECK_FALSE(others.read(key));
  for (std::size_t i = 0; i < key.size(); ++i) {
    auto changed = key;
    changed[i] = changed[i] == 'A' ? 'Q' : 'A';
    CHECK_FALSE(keys.read(changed));
    CHECK_FALSE(keys.read(key.substr(0, i)));
  }
  for (const auto* wrong : {"", "ek_", "ek_.", "ek_a.b", "ek_!.!", "sk_a.b"}) CHECK_FALSE(keys.read(wrong));
  CHECK_FALSE(keys.read("ek_" + std::string(1 << 20, 'A') + ".AAAA"));
}

TEST_CASE("an ephemeral key has one spelling") {
  const ephemeral_keys keys([] { return 1000; });
  const std::string letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=";
  for (const std::string owner : {"", "a", "an"}) { // payloads of every length modulo 3
    const auto key = keys.make({1600, owner, "{}"});
    REQUIRE(keys.read(key));
    for (const auto at : {key.find('.') - 1, key.size() - 1}) {
      auto other = key;
      for (const char letter : letters) {
        other[at] = letter;
        CHECK(keys.read(other).has_value() == (letter == key[at]));
      }
    }
    for (const auto* more : {"=", "==", ".", "A", " ", "\n"}) CHECK_FALSE(keys.read(key + more));
    auto padded = key;
    padded.insert(key.find('.'), "=");
    CHECK_FALSE(keys.read(padded));
  }
}

TEST_CASE("servers with one secret take each other's ephemeral keys") {
  temporary_folder folder;
  const auto file = folder.write("secret", std::string(32, 's'));
  const auto one = ephemeral_keys::load(file), two = ephemeral_keys::load(file);
  CHECK(two.read(one.make({one.now() + 60, "ann", "{}"})));
  CHECK_THROWS_AS(ephemeral_keys::load(folder.write("short", std::string(31, 's'))), parley::config::settings_error);
  CHECK_THROWS_AS(ephemeral_keys::load(file / "none"), parley::config::settings_error);
}

TEST_CASE("the owner of an API key gets ephemeral keys, and sessions with them") {
  key_fixture fixture;
  const auto key = fixture.minted(R"({"session":{"type":"realtime","instructions":"Be brief."}})");
  wire_client client = fixture.connect();
  SECTION("header") {
    CHECK(client.upgrade("/v1/realtime?model=any", bearer_of(key)).status == 101);
  }
  SECTION("header of Azure's clients") {
    CHECK(client.upgrade("/v1/realtime?model=any", "api-key: " + key + "\r\n").status == 101);
  }
  SECTION("subprotocol") {
    CHECK(client
              .upgrade("/v1/realtime?model=any",
                       "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key." + key + "\r\n")
              .status == 101);
  }
  SECTION("Live") {
    CHECK(client.upgrade("/v1/live", bearer_of(key)).status == 101);
  }
  SECTION("a URL that says nothing else") {
    CHECK(client.upgrade("/v1/realtime", bearer_of(key)).status == 101);
  }
  CHECK(fixture.gateway.eventually([](const auto& all) { return !all.empty(); }));
  const auto info = fixture.gateway.at(0).info;
  CHECK(info.key == "ann");
  REQUIRE(info.realtime);
  CHECK(json::parse(info.realtime->session.value())["instructions"] == "Be brief.");
}

TEST_CASE("an ephemeral key is good for nothing else") {
  key_fixture fixture;
  const auto key = fixture.minted();
  CHECK(fixture.post("/v1/realtime/client_secrets", "{}", bearer_of(key)).status == 401);
  CHECK(fixture.post("/v1/chat/completions", "{}", bearer_of(key)).status == 401);
  CHECK(fixture.connect().get("/sessions", "GET", bearer_of(key)).status == 401);
  CHECK(fixture.connect().upgrade("/v1/realtime?model=any", bearer_of(key + "A")).status == 401);
}

TEST_CASE("nobody gets an ephemeral key without an API key, where one is asked for") {
  key_fixture fixture;
  const auto got = fixture.post("/v1/realtime/client_secrets", "{}");
  CHECK(got.status == 401);
  CHECK(json::parse(got.body)["error"]["code"] == "invalid_api_key");
}

TEST_CASE("ephemeral keys count among the starts of their owner") {
  key_fixture fixture;
  fixture.options.admission.starts_per_key = 2;
  fixture.minted();
  fixture.minted();
  CHECK(fixture.post("/v1/realtime/client_secrets", "{}", bearer_of("alpha")).status == 429);
}

TEST_CASE("without API keys ephemeral ones work, and wrong ones are told") {
  open_fixture fixture;
  const auto got = fixture.post("/v1/realtime/client_secrets", "{}");
  REQUIRE(got.status == 200);
  const std::string key = json::parse(got.body)["value"];
  CHECK(fixture.connect().upgrade("/v1/realtime?model=any", bearer_of(key)).status == 101);
  CHECK(fixture.connect().upgrade("/v1/realtime?model=any", bearer_of(key + "A")).status == 401);
  CHECK(fixture.connect().upgrade("/v1/realtime?model=any", bearer_of("none")).status == 101);
}

TEST_CASE("what is wrong with a request for an ephemeral key is told as OpenAI does") {
  open_fixture fixture;
  const auto got =
      fixture.post("/v1/realtime/client_secrets", R"({"expires_after":{"anchor":"created_at","seconds":5}})");
  CHECK(got.status == 400);
  const auto error = json::parse(got.body)["error"];
  CHECK(error["code"] == "invalid_value");
  CHECK(error["param"] == "expires_after.seconds");
  CHECK(error["type"] == "invalid_request_error");
}
