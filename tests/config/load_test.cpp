#include "config/load.hpp"

#include <catch2/catch.hpp>

using namespace parley::config;

namespace {

std::string complaint_of_text(std::string_view toml) {
  settings target;
  try {
    load_text(target, toml, "f.toml");
  } catch (const settings_error& e) {
    return e.what();
  }
  return "none";
}

std::string complaint_of_environment(const char* variable) {
  settings target;
  const char* const environment[] = {"HOME=/", variable, nullptr};
  try {
    apply_environment(target, environment);
  } catch (const settings_error& e) {
    return e.what();
  }
  return "none";
}

std::string complaint_of_override(std::string_view text) {
  settings target;
  try {
    apply_override(target, text);
  } catch (const settings_error& e) {
    return e.what();
  }
  return "none";
}

} // namespace

TEST_CASE("a file lays its keys over the defaults") {
  settings target;
  load_text(target, "[server]\nport = 1234\n[limits]\naudio_seconds = 5\nvideo_seconds = 7.5\n[engine]\nseed = 9\n",
            "f.toml");
  CHECK(target.server.port == 1234);
  CHECK(target.server.host == "127.0.0.1");
  CHECK(target.limits.audio_seconds == 5);
  CHECK(target.limits.video_seconds == 7.5);
  CHECK(target.engine.seed == 9u);
  load_text(target, "[engine]\nseed = \"none\"\n", "f.toml");
  CHECK_FALSE(target.engine.seed.has_value());
}

TEST_CASE("a wrong file is refused in one line with file, line and key") {
  CHECK(complaint_of_text("[server]\nport = 8006\nhots = 'x'\n") == "f.toml:3: unknown key server.hots");
  CHECK(complaint_of_text("[sever]\n") == "f.toml:1: unknown section sever");
  CHECK(complaint_of_text("port = 1\n") == "f.toml:1: unknown key port");
  CHECK(complaint_of_text("server = 1\n") == "f.toml:1: server must be a section");
  CHECK(complaint_of_text("[server]\n\nport = 70000\n") ==
        "f.toml:3: server.port must be a whole number from 0 to 65535");
  CHECK(complaint_of_text("[server]\nport = \"8006\"\n") ==
        "f.toml:2: server.port must be a whole number from 0 to 65535");
  CHECK(complaint_of_text("[server]\nport = 1.5\n") == "f.toml:2: server.port must be a whole number from 0 to 65535");
  CHECK(complaint_of_text("[server]\nport = [1]\n") == "f.toml:2: server.port must be a single value");
  CHECK(complaint_of_text("[limits]\naudio_seconds = nan\n") ==
        "f.toml:2: limits.audio_seconds must be a number from 0.001 to 86400");
  CHECK(complaint_of_text("[protocol]\nlegacy_extras = 1\n") ==
        "f.toml:2: protocol.legacy_extras must be true or false");
  CHECK(complaint_of_text("[engine]\ndtype = \"int8\"\n") ==
        "f.toml:2: engine.dtype must be one of auto, float32, bfloat16, float16");
  CHECK(complaint_of_text("[engine]\nquant = \"int2\"\n") == "f.toml:2: engine.quant must be one of none, int8, int4");
  CHECK(complaint_of_text("[engine]\nseed = -1\n").starts_with("f.toml:2: engine.seed must be a whole number"));
  CHECK(complaint_of_text("[worker]\ndevice = \"gpu\"\n") ==
        "f.toml:2: worker.device must be auto, cpu, cuda, cuda:N, cuda:all or a list of devices");
  CHECK(complaint_of_text("[tls]\nmode = \"on\"\n") == "f.toml:2: tls.mode must be one of off, auto, file");
  CHECK(complaint_of_text("[log]\nlevel = 3\n").starts_with("f.toml:2: log.level must be trace"));
  const auto syntax = complaint_of_text("[server]\nport = \n");
  CHECK(syntax.starts_with("f.toml:2: "));
  CHECK(syntax.find('\n') == std::string::npos);
}

TEST_CASE("a device is one, all GPUs, or a list") {
  settings target;
  for (const auto* named : {"auto", "cpu", "cuda", "cuda:12", "cuda:all", "cuda:0,cuda:1", "cpu,cpu"}) {
    apply_override(target, std::string("worker.device=") + named);
    CHECK(target.worker.device == named);
  }
  for (const auto* wrong : {"", "cpu,", ",cpu", "cuda:", "cuda:x", "all", "cuda:all,cpu", "cuda:0, cuda:1"})
    CHECK_THROWS_AS(apply_override(target, std::string("worker.device=") + wrong), settings_error);
}

TEST_CASE("a file that is not there is refused by name") {
  settings target;
  CHECK_THROWS_WITH(load_file(target, "no/such.toml"), "no/such.toml: cannot be read");
  CHECK_THROWS_WITH(load_file(target, "tests"), "tests: cannot be read");
  CHECK_NOTHROW(load_file(target, "/dev/null"));
}

TEST_CASE("an override takes plain text in the key's own type") {
  settings target;
  apply_override(target, "worker.model=42");
  apply_override(target, "worker.device=cuda:1");
  apply_override(target, "limits.drain_seconds=1");
  apply_override(target, "limits.outbox_bytes=65536");
  apply_override(target, "protocol.duplex_response_done=true");
  apply_override(target, "engine.seed=7");
  apply_override(target, "engine.window=basic");
  apply_override(target, "voice.default=a=b.wav");
  CHECK(target.worker.model == "42");
  CHECK(target.worker.device == "cuda:1");
  CHECK(target.limits.drain_seconds == 1);
  CHECK(target.limits.outbox_bytes == 65536);
  CHECK(target.protocol.duplex_response_done);
  CHECK(target.engine.seed == 7u);
  CHECK(target.engine.window == window_mode::basic);
  CHECK(target.voice.default_wav == "a=b.wav");
}

TEST_CASE("a wrong override is refused by name") {
  CHECK(complaint_of_override("server.prot=1") == "--set: unknown key server.prot");
  CHECK(complaint_of_override("server.port") == "--set takes section.key=value, not \"server.port\"");
  CHECK(complaint_of_override("limits.audio_seconds=soon") ==
        "--set: limits.audio_seconds must be a number from 0.001 to 86400, not \"soon\"");
  CHECK(complaint_of_override("limits.audio_seconds=inf").starts_with("--set: limits.audio_seconds must be"));
  CHECK(complaint_of_override("server.port=99999999999999999999").starts_with("--set: server.port must be"));
  CHECK(complaint_of_override("server.host=").starts_with("--set: server.host must be a host name"));
  CHECK(complaint_of_override("worker.max_sessions=-1").starts_with("--set: worker.max_sessions must be"));
  settings target;
  CHECK_THROWS_WITH(apply_flag(target, "--port", "server.port", "70000"),
                    "--port must be a whole number from 0 to 65535, not \"70000\"");
}

TEST_CASE("the environment sets keys by their names") {
  settings target;
  const char* const environment[] = {"PATH=/bin",
                                     "PARLEY_SERVER_PORT=1234",
                                     "PARLEY_LIMITS_CHAT_IDLE_SECONDS=5",
                                     "PARLEY_VOICE_DEFAULT=a=b.wav",
                                     "PARLEY_TLS_MODE=auto",
                                     nullptr};
  apply_environment(target, environment);
  CHECK(target.server.port == 1234);
  CHECK(target.limits.chat_idle_seconds == 5);
  CHECK(target.voice.default_wav == "a=b.wav");
  CHECK(target.tls.mode == tls_mode::automatic);
}

TEST_CASE("a wrong variable of a section is refused by name, others are left alone") {
  CHECK(complaint_of_environment("PARLEY_SERVER_PROT=1") == "PARLEY_SERVER_PROT: unknown key server.prot");
  CHECK(
      complaint_of_environment("PARLEY_SERVER_PORT=x").starts_with("PARLEY_SERVER_PORT: server.port must be a whole"));
  CHECK(complaint_of_environment("PARLEY_SERVER_PORT=").starts_with("PARLEY_SERVER_PORT: server.port must be"));
  for (const char* other :
       {"PARLEY_CACHE=/tmp", "PARLEY_BINARY=x", "PARLEY_=x", "PARLEY", "PARLEY_SERVER", "SERVER_PORT=1"})
    CHECK(complaint_of_environment(other) == "none");
}

TEST_CASE("variables that tell of a service of Kubernetes are none of ours, whatever the service is called") {
  // For every Service of a namespace its pods get these.
  for (const std::string service : {"PARLEY", "PARLEY_SERVER", "PARLEY_WORKER", "PARLEY_NODES_A"})
    for (const std::string told :
         {"_SERVICE_HOST=10.0.0.1", "_SERVICE_PORT=8006", "_SERVICE_PORT_HTTPS=8006", "_PORT=tcp://10.0.0.1:8006",
          "_PORT=sctp://10.0.0.1:8006", "_PORT_8006_TCP=tcp://10.0.0.1:8006", "_PORT_8006_TCP_PROTO=tcp",
          "_PORT_8006_UDP_PORT=8006", "_PORT_8006_TCP_ADDR=10.0.0.1"}) {
      const auto variable = service + told;
      INFO(variable);
      CHECK(complaint_of_environment(variable.c_str()) == "none");
    }
  // What only looks a little like them is still told.
  CHECK(
      complaint_of_environment("PARLEY_SERVER_PORT=10.0.0.1:8006").starts_with("PARLEY_SERVER_PORT: server.port must"));
  CHECK(complaint_of_environment("PARLEY_WORKER_PORT=8006") == "PARLEY_WORKER_PORT: unknown key worker.port");
  CHECK(complaint_of_environment("PARLEY_WORKER_PORT_TCP=x") == "PARLEY_WORKER_PORT_TCP: unknown key worker.port_tcp");
  settings target;
  const char* const environment[] = {"PARLEY_SERVER_PORT=tcp://10.0.0.1:8006", "PARLEY_SERVER_HOST=0.0.0.0", nullptr};
  apply_environment(target, environment);
  CHECK(target.server.port == 8006);
  CHECK(target.server.host == "0.0.0.0");
}

TEST_CASE("keys that need each other are told together") {
  settings target;
  CHECK_NOTHROW(check_whole(target));
  target.tls.mode = tls_mode::automatic;
  CHECK_NOTHROW(check_whole(target));
  target.tls.mode = tls_mode::file;
  target.tls.cert = "a.pem";
  CHECK_THROWS_WITH(check_whole(target), "tls.mode = \"file\" needs tls.cert and tls.key");
  target.tls.key = "a.key";
  CHECK_NOTHROW(check_whole(target));
}
