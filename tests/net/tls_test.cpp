#include "net/tls.hpp"

#include "config/load.hpp"
#include "net/beast.hpp"
#include "net/self_signed.hpp"
#include "tests/net/server_fixture.hpp"
#include "tests/support/temporary_folder.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <catch2/catch.hpp>

#include <fstream>
#include <sys/stat.h>

using namespace parley::net;
using parley::tests::temporary_folder;
namespace ssl = boost::asio::ssl;
using tls_mode = parley::config::tls_mode;

namespace {

/// A client with blocking sockets that trusts exactly one certificate.
class tls_client {
public:
  tls_client(std::uint16_t port, const std::filesystem::path& trusted, const std::string& name = "localhost")
      : stream_(io_, context(trusted)) {
    stream_.set_verify_callback(ssl::host_name_verification(name));
    stream_.next_layer().connect({asio::ip::address_v4::loopback(), port});
    stream_.handshake(ssl::stream_base::client);
  }

  unsigned get(const std::string& path) {
    http::request<http::empty_body> request(http::verb::get, path, 11);
    request.set(http::field::host, "localhost");
    http::write(stream_, request);
    http::response<http::string_body> response;
    http::read(stream_, buffer_, response);
    return response.result_int();
  }

  std::string echo(const std::string& text) {
    websocket::stream<ssl::stream<tcp::socket>&> ws(stream_);
    ws.handshake("localhost", "/v1/realtime");
    ws.write(asio::buffer(text));
    beast::flat_buffer got;
    ws.read(got);
    ws.close(websocket::close_code::normal);
    return beast::buffers_to_string(got.data());
  }

private:
  ssl::context& context(const std::filesystem::path& trusted) {
    context_.set_verify_mode(ssl::verify_peer);
    context_.load_verify_file(trusted.string());
    return context_;
  }

  asio::io_context io_;
  ssl::context context_{ssl::context::tls_client};
  ssl::stream<tcp::socket> stream_;
  beast::flat_buffer buffer_;
};

struct tls_fixture : server_fixture {
  tls_fixture() {
    options.tls = {tls_mode::automatic, folder.path() / "made" / "tls.pem", folder.path() / "made" / "tls.key"};
  }
  tls_client client() { return tls_client(start().port(), options.tls.cert); }
  temporary_folder folder;
};

} // namespace

TEST_CASE("HTTP and WebSocket are spoken through TLS, with a certificate made at the start") {
  tls_fixture fixture;
  CHECK(fixture.start().url().starts_with("https://"));
  CHECK(fixture.client().get("/health") == 200);
  {
    tls_client twice = fixture.client();
    CHECK(twice.get("/health") == 200);
    CHECK(twice.get("/nowhere") == 404);
  }
  CHECK(fixture.client().echo(std::string(300'000, 'x')) == std::string(300'000, 'x'));
  CHECK(fixture.gateway.eventually([](auto& sessions) { return !sessions.empty() && sessions.at(0)->gone; }));
  CHECK(fixture.empties());
}

TEST_CASE("a client that does not know the certificate, or came for another name, does not go on") {
  tls_fixture fixture;
  tls_fixture other;
  other.start();
  const auto port = fixture.start().port();
  CHECK_THROWS(tls_client(port, other.options.tls.cert));
  CHECK_THROWS(tls_client(port, fixture.options.tls.cert, "parley.example"));
  CHECK(fixture.empties());
}

TEST_CASE("who speaks no TLS, or nothing at all, is let go") {
  tls_fixture fixture;
  fixture.options.limits.handshake = std::chrono::milliseconds(200);
  wire_client plain = fixture.connect();
  plain.send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  CHECK(plain.read_response().status == 400);
  wire_client silent = fixture.connect();
  CHECK(silent.ended());
  CHECK(fixture.empties());
}

TEST_CASE("who speaks plain HTTP at a port with TLS is told so") {
  tls_fixture fixture;
  for (const char* method : {"GET", "HEAD", "POST", "PUT"}) {
    INFO(method);
    wire_client plain = fixture.connect();
    plain.send(std::string(method) + " /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    const auto told = plain.read_response();
    CHECK(told.status == 400);
    CHECK(told.header("Connection") == "close");
    CHECK(told.body == R"({"error":{"code":"tls_required","message":"this port speaks https"}})");
    CHECK(plain.ended());
  }
  wire_client noise = fixture.connect();
  noise.send("SSH-2.0-hello\r\n\r\n");
  CHECK(noise.ended());
  CHECK(fixture.client().get("/health") == 200);
  CHECK(fixture.empties());
}

TEST_CASE("a certificate is kept from start to start, and renewed before it runs out") {
  const temporary_folder folder;
  const auto cert = folder.path() / "c.pem";
  const auto key = folder.path() / "c.key";
  const auto read = [&] {
    std::ifstream in(cert);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  CHECK(make_tls({tls_mode::automatic, cert, key}, "127.0.0.1"));
  const std::string first = read();
  CHECK(holds_for_a_while(cert));
  CHECK(make_tls({tls_mode::automatic, cert, key}, "127.0.0.1"));
  CHECK(read() == first);
  std::filesystem::remove(key);
  CHECK(make_tls({tls_mode::automatic, cert, key}, "127.0.0.1"));
  CHECK(read() != first);
  struct stat of {};
  REQUIRE(stat(key.c_str(), &of) == 0);
  CHECK((of.st_mode & 0777) == 0600);
  CHECK_FALSE(holds_for_a_while(folder.write("none.pem", "this is no certificate")));
}

TEST_CASE("a certificate of our own has server.names, and is made again for a new one") {
  tls_fixture fixture;
  fixture.options.names = "voice.lan Robot.example 192.0.2.7 [2001:db8::7]";
  const auto port = fixture.start().port();
  const auto& cert = fixture.options.tls.cert;
  for (const char* name : {"localhost", "127.0.0.1", "voice.lan", "robot.example", "192.0.2.7", "2001:db8::7"}) {
    INFO(name);
    CHECK(tls_client(port, cert, name).get("/health") == 200);
  }
  CHECK_THROWS(tls_client(port, cert, "other.lan"));

  const auto key = fixture.options.tls.key;
  const auto read = [&] {
    std::ifstream in(cert);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string first = read();
  CHECK(make_tls({tls_mode::automatic, cert, key}, "127.0.0.1", "robot.example voice.lan"));
  CHECK(read() == first);
  CHECK(make_tls({tls_mode::automatic, cert, key}, "127.0.0.1", "voice.lan other.lan"));
  CHECK(read() != first);
  CHECK_FALSE(lacks_a_name(cert, {"voice.lan", "other.lan"}));
  CHECK(lacks_a_name(cert, {"robot.example"}));
  CHECK_FALSE(lacks_a_name(fixture.options.tls.cert.parent_path() / "none", {"voice.lan"}));
}

TEST_CASE("certificates that cannot be used are refused by key and file") {
  const temporary_folder folder;
  const auto text = folder.write("x.pem", "this is no certificate");
  CHECK(make_tls({}, "localhost") == nullptr);
  CHECK_THROWS_WITH(make_tls({tls_mode::file, "no/such.pem", "no/such.key"}, "localhost"),
                    Catch::StartsWith("tls.cert: no/such.pem: "));
  CHECK_THROWS_AS(make_tls({tls_mode::file, text, text}, "localhost"), parley::config::settings_error);
  make_self_signed(folder.path() / "a.pem", folder.path() / "a.key", {"localhost"});
  make_self_signed(folder.path() / "b.pem", folder.path() / "b.key", {"localhost"});
  CHECK_THROWS_WITH(make_tls({tls_mode::file, folder.path() / "a.pem", folder.path() / "b.key"}, "localhost"),
                    Catch::StartsWith("tls.key: "));
  CHECK_THROWS_AS(make_tls({tls_mode::automatic, "/proc/parley/x.pem", "/proc/parley/x.key"}, "localhost"),
                  parley::config::settings_error);
}

TEST_CASE("a certificate that was read again is for new connections; one that cannot be read changes nothing") {
  tls_fixture fixture;
  auto& server = fixture.start();
  const auto& [mode, cert, key] = fixture.options.tls;
  const auto old_cert = fixture.folder.path() / "old.pem";
  std::filesystem::copy_file(cert, old_cert);
  tls_client before(server.port(), old_cert);
  std::filesystem::remove(key); // so another one is made
  const auto put_into_effect = server.read_again();
  CHECK(tls_client(server.port(), old_cert).get("/health") == 200);
  put_into_effect();
  CHECK(tls_client(server.port(), cert).get("/health") == 200);
  CHECK_THROWS(tls_client(server.port(), old_cert));
  CHECK(before.get("/health") == 200);
}

TEST_CASE("keys and certificates are read again together or not at all") {
  tls_fixture fixture;
  fixture.options.tls.mode = tls_mode::file;
  fixture.options.keys_file =
      fixture.folder.write("keys", "ann 8ed3f6ad685b959ead7022518e1af76cd816f8e8ec7ccdda1ed4018e8f2223f8\n");
  const auto& [mode, cert, key] = fixture.options.tls;
  make_self_signed(cert, key, {});
  auto& server = fixture.start();
  fixture.folder.write("keys", "");
  std::ofstream(key) << "no key";
  CHECK_THROWS_WITH(server.read_again(), Catch::StartsWith("tls.key: "));
  CHECK(fixture.gateway.removed_keys.empty());
  make_self_signed(cert, key, {});
  fixture.folder.write("keys", "bob\n");
  CHECK_THROWS_WITH(server.read_again(), Catch::Contains("keys:1: "));
  fixture.folder.write("keys", "");
  server.read_again()();
  CHECK(fixture.gateway.removed_keys == std::vector<std::string>{"ann"});
  CHECK(fixture.gateway.close_reason == "key_removed");
}
