#include "actors/house.hpp"
#include "app/command.hpp"
#include "app/default_voice.hpp"
#include "app/logging.hpp"
#include "app/noticeboard.hpp"
#include "config/load.hpp"
#include "inference/engine.hpp"
#include "inference/engine/default_model.hpp"
#include "net/server.hpp"
#include "net/signals.hpp"

#include <CLI/CLI.hpp>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

namespace parley::app {
namespace {

struct flags {
  std::string config;
  std::string host, port, model, device;
  std::vector<std::string> overrides;
};

/// A file, then `--set`, then flags of their own: the nearer to the hand, the stronger.
config::settings settings_from(const flags& given) {
  config::settings settings;
  if (!given.config.empty()) config::load_file(settings, given.config);
  for (const auto& assignment : given.overrides) config::apply_override(settings, assignment);
  const auto flag = [&](const char* name, const char* key, const std::string& value) {
    if (!value.empty()) config::apply_flag(settings, name, key, value);
  };
  flag("--host", "server.host", given.host);
  flag("--port", "server.port", given.port);
  flag("--model", "worker.model", given.model);
  flag("--device", "worker.device", given.device);
  if (settings.worker.model.empty()) settings.worker.model = inference::default_model_directory().string();
  return settings;
}

/// Until a signal asks to stop, or the first worker fails to come up. Prints the ready line in between.
int wait_for_the_end(noticeboard& board, const net::server& server) {
  for (bool ready = false;;) {
    const auto news = board.wait();
    if (std::holds_alternative<stop_asked>(news)) return 0;
    if (std::holds_alternative<worker_up>(news)) {
      if (!ready) std::cout << "ready " << server.url() << std::endl;
      ready = true;
    } else if (!ready) {
      std::cerr << "parley: " << std::get<worker_down>(news).reason << '\n';
      return 1;
    }
  }
}

int serve(const config::settings& settings) {
  start_logging(settings);
  noticeboard board;
  std::atomic<int> signals = 0;
  const net::stop_signals on_signal([&](int) {
    // The first one drains; whoever sends a second one does not want to wait.
    if (++signals > 1) std::_Exit(1);
    board.post(stop_asked{});
  });
  auto options = net::options_from(settings);
  options.voice = [voice = load_default_voice(settings)] { return voice; };

  actors::house house(settings, [&](const actors::worker_view& worker) {
    if (worker.state == actors::worker_state::up) board.post(worker_up{});
    if (worker.state == actors::worker_state::down) board.post(worker_down{worker.reason});
  });
  net::server server(std::move(options), house);
  house.add_worker(settings.worker.device,
                   [&](inference::engine::sink sink) { return inference::make_engine(settings, std::move(sink)); });

  const int status = wait_for_the_end(board, server);
  spdlog::info("stopping: {} sessions are told", house.live_sessions());
  house.drain();
  server.stop(std::chrono::seconds(5));
  return status;
}

} // namespace

void add_serve(CLI::App& root, action& chosen) {
  auto* command = root.add_subcommand("serve", "Serve /v1/realtime: sockets, queue and one device in one process");
  auto given = std::make_shared<flags>();
  command->add_option("--config", given->config, "Settings file (config/parley.toml documents every key)");
  command->add_option("--host", given->host, "Address to listen on");
  command->add_option("--port", given->port, "Port; 0 takes any free one");
  command->add_option("--model", given->model, "Checkpoint folder");
  command->add_option("--device", given->device, "cpu or cuda:N");
  command->add_option("--set", given->overrides, "section.key=value, over the file; may be repeated")->allow_extra_args(false);
  command->callback([&chosen, given] {
    chosen = [given] { return serve(settings_from(*given)); };
  });
}

} // namespace parley::app
