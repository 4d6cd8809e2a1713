#include "config/keys.hpp"

#include "config/load.hpp"
#include "config/print.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <set>
#include <sstream>

using namespace parley::config;

TEST_CASE("config/parley.toml is what the table says, comments and all") {
  std::ifstream in("config/parley.toml");
  std::ostringstream text;
  text << in.rdbuf();
  // To update the file: build/release/parley check-config /dev/null > config/parley.toml
  CHECK(text.str() == print(settings{}));
}

TEST_CASE("each key has a name and a member of its own, and its default is in its own range") {
  std::set<std::string_view> names;
  std::set<const void*> members;
  settings target;
  for (const auto& k : keys()) {
    INFO(k.name);
    CHECK(names.insert(k.name).second);
    CHECK(members.insert(std::visit([](auto* p) { return static_cast<const void*>(p); }, k.member(target))).second);
    CHECK_NOTHROW(apply_override(
        target, std::string(k.name) + "=" + [&] {
          auto text = to_toml(settings{}, k);
          return text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
        }()));
  }
  CHECK(find_key("server.port") != nullptr);
  CHECK(find_key("server.prot") == nullptr);
}

TEST_CASE("what is printed can be loaded and prints the same") {
  settings odd;
  odd.worker.model = "a \"quoted\" \\ folder\n";
  odd.limits.init_seconds = 0.25;
  odd.limits.drain_seconds = 1e-40;
  odd.engine.seed = 42;
  odd.engine.precision = dtype::bfloat16;
  odd.engine.quant = quantization::int4;
  odd.engine.speech = speech_dtype::mixed;
  odd.engine.window = window_mode::context;
  odd.protocol.legacy_extras = true;
  odd.log.format = log_format::json;
  odd.tls.mode = tls_mode::automatic;
  settings read;
  load_text(read, print(odd), "printed");
  CHECK(print(read) == print(odd));
  CHECK(read.worker.model == odd.worker.model);
  CHECK(read.limits.init_seconds == 0.25);
  CHECK(read.engine.seed == 42u);
}
