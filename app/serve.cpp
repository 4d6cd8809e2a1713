#include "actors/house.hpp"
#include "app/commands.hpp"
#include "app/default_voice.hpp"
#include "app/logging.hpp"
#include "app/service_news.hpp"
#include "config/load.hpp"
#include "inference/engine/default_model.hpp"
#include "net/server.hpp"
#include "net/signals.hpp"

#include <spdlog/spdlog.h>

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace parley::app {

namespace {

/// For the last frames of closed sessions to reach their clients.
constexpr std::chrono::seconds flush_time{2};

/// `timeout` and some shells signal a process and its group: two signals within this time are one request to stop.
constexpr std::chrono::seconds same_request{1};

using std::chrono::steady_clock;

struct serve_flags {
  std::string config;
  /// `section.key=value`, in their order.
  std::vector<std::string> overrides;
  std::string host;
  std::string port;
  std::string model;
  std::string device;
  std::string quant;
  std::string tls;
};

config::settings settings_from(const serve_flags& flags) {
  config::settings settings;
  if (!flags.config.empty()) config::load_file(settings, flags.config);
  config::apply_environment(settings, environ);
  for (const auto& one : flags.overrides) config::apply_override(settings, one);
  const auto apply = [&](std::string_view flag, std::string_view key, const std::string& value) {
    if (!value.empty()) config::apply_flag(settings, flag, key, value);
  };
  apply("--host", "server.host", flags.host);
  apply("--port", "server.port", flags.port);
  apply("--model", "worker.model", flags.model);
  apply("--device", "worker.device", flags.device);
  apply("--quant", "engine.quant", flags.quant);
  apply("--tls", "tls.mode", flags.tls);
  config::check_whole(settings);
  return settings;
}

/// Until the server has to end: the exit status.
int serve_until_told(service_news& news, const std::string& url) {
  while (true) {
    const auto next = news.wait();
    switch (next.kind) {
    case service_news::what::worker_up:
      if (news.first_worker()) std::cout << "ready " << url << std::endl;
      break;
    case service_news::what::worker_down:
      // There is no other one: whoever looks after this process starts it anew.
      std::cerr << "parley: the model cannot be served: " << next.reason << std::endl;
      return 1;
    case service_news::what::asked_to_stop: spdlog::info("asked to stop"); return 0;
    }
  }
}

int serve(const serve_flags& flags) {
  auto settings = settings_from(flags);
  start_logging(settings);
  const std::filesystem::path model = settings.worker.model.empty() ? inference::default_model_directory()
                                                                    : std::filesystem::path(settings.worker.model);
  settings.worker.model = model.string();

  auto options = net::options_from(settings);
  options.model = model.filename().string();
  options.voice = [voice = load_default_voice(settings, model)] { return voice; };

  service_news news;
  const net::stop_signals signals([&news, asked = std::optional<steady_clock::time_point>()](int) mutable {
    if (!asked) {
      asked = steady_clock::now();
      news.ask_to_stop();
    } else if (steady_clock::now() - *asked > same_request) {
      spdlog::warn("asked to stop again: leaving at once");
      std::_Exit(0);
    }
  });
  actors::house house(settings, [&](const actors::worker_view& worker) {
    if (worker.state == actors::worker_state::up) news.worker_up();
    if (worker.state == actors::worker_state::down) news.worker_down(worker.reason);
  });
  net::server server(std::move(options), house);
  house.add_worker(settings.worker.device, [settings](inference::engine::sink tell) {
    return inference::make_engine(settings, std::move(tell));
  });
  const int status = serve_until_told(news, server.url());
  house.drain();
  server.stop(flush_time);
  return status;
}

} // namespace

void add_serve(CLI::App& app, job& chosen) {
  auto* sub = app.add_subcommand("serve", "Serves the model to clients");
  const auto flags = std::make_shared<serve_flags>();
  sub->add_option("--config", flags->config, "Settings file (TOML); config/parley.toml documents every key");
  sub->add_option("--host", flags->host, "Address to listen on");
  sub->add_option("--port", flags->port, "Port to listen on; 0 takes a free one");
  sub->add_option("--model", flags->model, "Checkpoint folder; none = the embedded default model");
  sub->add_option("--device", flags->device, "cpu or cuda:N");
  sub->add_option("--quant", flags->quant, "int8 or int4: the language model's layers in fewer bits");
  sub->add_option("--tls", flags->tls, "off, auto (a self-signed certificate) or file (tls.cert, tls.key)");
  sub->add_option("--set", flags->overrides, "section.key=value: overrides a setting; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->callback([flags, &chosen] { chosen = [flags] { return serve(*flags); }; });
}

} // namespace parley::app
