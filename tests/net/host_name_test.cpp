#include "net/host_name.hpp"

#include "config/load.hpp"

#include <catch2/catch.hpp>

using namespace parley::net;

namespace {

struct reading {
  std::string_view text;
  std::string_view host; ///< the host as understood; empty = refused
  bool loopback = false;
  int port = -1; ///< -1 = none
};

std::string shown(const host_name& host) {
  return host.address ? host.address->to_string() : host.name;
}

} // namespace

TEST_CASE("hosts are understood as browsers understand them, or not at all") {
  const reading table[] = {
      {"127.0.0.1", "127.0.0.1", true},
      {"127.0.0.1:8006", "127.0.0.1", true, 8006},
      {"127.255.255.254", "127.255.255.254", true},
      {"[::1]", "::1", true},
      {"[::1]:8006", "::1", true, 8006},
      {"[0:0:0:0:0:0:0:1]", "::1", true},
      {"[::ffff:127.0.0.1]", "127.0.0.1", true},
      {"[::FFFF:7F00:1]:80", "127.0.0.1", true, 80},
      {"localhost", "localhost", true},
      {"LOCALHOST", "localhost", true},
      {"LocalHost:1", "localhost", true, 1},
      {"localhost.", "localhost", true},
      {"localhost.:8006", "localhost", true, 8006},
      // Names and addresses that belong to somebody else.
      {"127.evil.example", "127.evil.example"},
      {"127.0.0.1.evil.example", "127.0.0.1.evil.example"},
      {"127.0.0.1.nip.io", "127.0.0.1.nip.io"},
      {"localhost.evil", "localhost.evil"},
      {"localhost.evil.example.", "localhost.evil.example"},
      {"x.localhost", "x.localhost"},
      {"localhost-x", "localhost-x"},
      {"localhosts", "localhosts"},
      {"my_box.lan:65535", "my_box.lan", false, 65535},
      {"xn--bcher-kva.example", "xn--bcher-kva.example"},
      {"192.0.2.7:8006", "192.0.2.7", false, 8006},
      {"0.0.0.0", "0.0.0.0"},
      {"[::]", "::"},
      {"[2001:DB8::1]:443", "2001:db8::1", false, 443},
      {"[::ffff:192.0.2.7]", "192.0.2.7"},
      {"[::127.0.0.1]", "::127.0.0.1"},
      // Texts that different parsers understand differently.
      {"", ""},
      {".", ""},
      {"..", ""},
      {"localhost..", ""},
      {".localhost", ""},
      {"127.1", ""},
      {"127.0.1", ""},
      {"127.0.0.1.", ""},
      {"127.0.0.01", ""},
      {"0177.0.0.1", ""},
      {"0x7f.1", ""},
      {"0x7f000001", ""},
      {"2130706433", ""},
      {"127.0.0.256", ""},
      {"127.0.0.1.1", ""},
      {"evil.0x7f", ""},
      {"::1", ""},
      {"::1:8006", ""},
      {"[::1", ""},
      {"[::1]x", ""},
      {"[::1]]", ""},
      {"[::1%lo]", ""},
      {"[::1%25lo]", ""},
      {"[127.0.0.1]", ""},
      {"[localhost]", ""},
      {"[]", ""},
      {"localhost@evil.example", ""},
      {"evil@localhost", ""},
      {"user:pass@localhost", ""},
      {"localhost:", ""},
      {"localhost:80:80", ""},
      {"localhost:65536", ""},
      {"localhost:-1", ""},
      {"localhost:+1", ""},
      {"localhost:80 ", ""},
      {"localhost:8x", ""},
      {" localhost", ""},
      {"localhost evil", ""},
      {"localhost,evil.example", ""},
      {"localhost/", ""},
      {"localhost?x", ""},
      {"localhost#x", ""},
      {"localhost\\evil", ""},
      {"local%68ost", ""},
      {std::string_view("localhost\0.evil.example", 23), ""},
      {std::string_view("127.0.0.1\0.evil.example", 23), ""},
      {"l\u00f6calhost", ""},
      {"\uff1127.0.0.1", ""},
  };
  static_assert(std::size(table) >= 40);
  for (const reading& each : table) {
    INFO(each.text);
    const auto read = read_authority(each.text);
    REQUIRE(read.has_value() == !each.host.empty());
    if (!read) continue;
    CHECK(shown(read->host) == each.host);
    CHECK(read->host.is_loopback() == each.loopback);
    CHECK(read->port.has_value() == (each.port >= 0));
    if (read->port) CHECK(*read->port == each.port);
  }
  CHECK_FALSE(read_host("localhost:80"));
  CHECK_FALSE(read_host(std::string(300, 'x')));
}

TEST_CASE("origins are a scheme, a host and a port, and nothing else") {
  CHECK(read_origin("http://localhost") == read_origin("HTTP://LOCALHOST.:80"));
  CHECK(read_origin("https://a.example") == read_origin("https://a.example:443"));
  CHECK(read_origin("https://a.example") != read_origin("http://a.example"));
  CHECK(read_origin("https://a.example") != read_origin("https://a.example:80"));
  CHECK(read_origin("http://[::1]:3000")->host.is_loopback());
  CHECK(read_origin("http://127.0.0.1:3000")->port == 3000);
  CHECK(read_origin("chrome-extension://abcdef")->scheme == "chrome-extension");
  for (const char* text : {"",
                           "null",
                           "localhost",
                           "//localhost",
                           "://localhost",
                           "http:/localhost",
                           "http://",
                           "http:///",
                           "file://",
                           "http://localhost/",
                           "http://localhost/path",
                           "http://localhost?q",
                           "http://localhost#f",
                           "http://user@localhost",
                           "http://localhost@evil.example",
                           "http://localhost:80:80",
                           "http://127.1",
                           "http://[::1",
                           "http://a.example http://b.example",
                           "http://a.example, http://b.example",
                           "1http://a.example",
                           "ht tp://a.example",
                           "http://http://a.example",
                           "http://127.0.0.1:99999"}) {
    INFO(text);
    CHECK_FALSE(read_origin(text));
  }
}

TEST_CASE("a server knows its own names, and which of them are its machine's alone") {
  const server_names names("parley.lan", " parley.example  other.example ");
  const auto knows = [&](std::string_view host) { return names.knows(*read_host(host)); };
  const auto is_local = [&](std::string_view host) { return names.is_local(*read_host(host)); };
  for (const char* host : {"127.0.0.1", "[::1]", "localhost", "parley.lan", "PARLEY.lan."}) {
    INFO(host);
    CHECK(knows(host));
    CHECK(is_local(host));
  }
  for (const char* host : {"parley.example", "other.example", "192.0.2.7", "[2001:db8::1]", "0.0.0.0"}) {
    INFO(host);
    CHECK(knows(host));
    CHECK_FALSE(is_local(host));
  }
  for (const char* host : {"evil.example", "x.parley.example", "parley.example.evil.example", "127.evil.example"}) {
    INFO(host);
    CHECK_FALSE(knows(host));
    CHECK_FALSE(is_local(host));
  }
  CHECK_FALSE(server_names("0.0.0.0", "").is_local(*read_host("0.0.0.0")));
  CHECK_FALSE(server_names("::", "").is_local(*read_host("[::]")));
  CHECK(server_names("fd00::1", "").is_local(*read_host("[fd00::1]")));
  CHECK_THROWS_AS(server_names("127.0.0.1", "parley.example:8006"), parley::config::settings_error);
  CHECK_THROWS_AS(server_names("127.0.0.1", "http://parley.example"), parley::config::settings_error);
}
