#include "app/device_workers.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>

namespace parley::app {

namespace {

/// Beyond `limits.drain_seconds`, for a worker to end.
constexpr std::chrono::seconds more_patience{5};

/// Between the processes of one machine no certificates are needed.
constexpr const char* certificate_keys[] = {"nodes.cert", "nodes.key", "nodes.ca"};

/// 128 random bits. Without certificates, it keeps other users of this machine from joining as workers.
std::string make_secret() {
  std::random_device device;
  std::string secret;
  for (int i = 0; i < 4; ++i) {
    std::array<char, 9> digits{};
    std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(device()));
    secret += digits.data();
  }
  return secret;
}

config::settings on_loopback(config::settings settings, const std::string& secret) {
  settings.nodes.host = "127.0.0.1";
  settings.nodes.port = 0;
  settings.nodes.secret = secret;
  for (auto* file : {&settings.nodes.cert, &settings.nodes.key, &settings.nodes.ca}) file->clear();
  return settings;
}

std::vector<std::string> worker_arguments(const service_flags& flags, const std::string& device,
                                          const std::string& address) {
  std::vector<std::string> words{"worker", "--join", address, "--device", device};
  if (flags.has_config()) words.insert(words.end(), {"--config", flags.config});
  const auto set = [&](const std::string& text) { words.insert(words.end(), {"--set", text}); };
  for (const auto& text : flags.overrides) set(text);
  for (const auto& flag : flags.settings)
    if (flag->given() && flag->key != "worker.device") set(flag->key + '=' + flag->value);
  for (const auto* key : certificate_keys) set(std::string(key) + '=');
  set("nodes.name=" + device);
  return words;
}

} // namespace

device_workers::device_workers(const service_flags& flags, const config::settings& settings,
                               const std::vector<std::string>& devices, actors::server_core& core, service_news& news)
    : secret_(make_secret()), nodes_(on_loopback(settings, secret_), core), ended_(devices.size()) {
  std::vector<worker_processes::command> commands;
  commands.reserve(devices.size());
  for (const auto& device : devices)
    commands.push_back({device, worker_arguments(flags, device, nodes_.address()), secret_});
  const auto grace = std::chrono::seconds(static_cast<std::int64_t>(settings.limits.drain_seconds)) + more_patience;
  processes_.emplace(std::move(commands), grace, [this, &news](std::size_t index) {
    if (ended_[index]) return;
    ended_[index] = true;
    news.worker_down("no worker could start");
  });
}

} // namespace parley::app
