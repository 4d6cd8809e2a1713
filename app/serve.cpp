#include "actors/server_core.hpp"
#include "app/commands.hpp"
#include "app/cuda_library.hpp"
#include "app/default_voice.hpp"
#include "app/device_workers.hpp"
#include "app/logging.hpp"
#include "app/service.hpp"
#include "inference/engine/device_names.hpp"
#include "net/server.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

namespace parley::app {

namespace {

/// Runs until the server has to stop; returns the exit status.
int serve_until_told(service_news& news, net::server& server, std::size_t workers) {
  auto ready = false;
  for (std::size_t down = 0;;) {
    const auto next = news.wait();
    switch (next.kind) {
    case service_news::what::worker_up:
      if (!std::exchange(ready, true)) std::cout << "ready " << server.url() << std::endl;
      break;
    case service_news::what::worker_down:
      // With one worker this is the end; of several, those that cannot start are tried again as long as others serve.
      // Exiting lets the supervisor restart the process.
      if (workers > 1 && (ready || ++down < workers)) break;
      std::cerr << "parley: the model cannot be served: " << next.reason << std::endl;
      return 1;
    case service_news::what::broken: std::cerr << "parley: " << next.reason << std::endl; return 1;
    case service_news::what::asked_to_reload: reload({[&] { return server.read_again(); }}); break;
    case service_news::what::asked_to_stop: spdlog::info("asked to stop"); return 0;
    }
  }
}

int serve(const service_flags& flags) {
  auto settings = settings_from(flags);
  prepare_process();
  start_logging(settings);
  load_cuda_library(settings.worker.device);
  const auto devices = inference::devices_named(settings.worker.device);
  const bool alone = devices.size() == 1;
  settings.worker.device = devices.front();
  if (alone && settings.journal.dir.empty()) { // this process is the only worker, so sessions cannot move
    settings.limits.journal_bytes = 0;
  }
  const std::filesystem::path model = resolve_model(settings);

  auto options = net::options_from(settings);
  options.model = model.filename().string();
  options.voice = [voice = load_default_voice(settings, model)] { return voice; };

  service_news news;
  const stop_requests requests(news);
  actors::server_core core(
      settings,
      [&](const actors::worker_view& worker) {
        if (worker.state == actors::worker_state::up) news.worker_up();
        if (alone && worker.state == actors::worker_state::down) news.worker_down(worker.reason);
      },
      alone ? actors::server_core::nodes::none : actors::server_core::nodes::may_join,
      [&news](std::string why) { news.broken(std::move(why)); });
  net::server server(std::move(options), core);
  std::unique_ptr<device_workers> workers;
  if (alone) {
    core.add_worker(settings.worker.device, [settings](inference::engine::sink tell) {
      return inference::make_engine(settings, std::move(tell));
    });
  } else {
    workers = std::make_unique<device_workers>(flags, settings, devices, core, news);
  }
  auto watch = watch_secrets(settings, news);
  const int status = serve_until_told(news, server, devices.size());
  watch.reset();
  core.drain();
  server.stop(flush_time);
  workers.reset();
  core.stop();
  return status;
}

} // namespace

void add_serve(CLI::App& app, job& chosen) {
  auto* sub = app.add_subcommand("serve", "Serves the model to clients");
  const auto flags = std::make_shared<service_flags>();
  flags->add_common(*sub);
  flags->add(*sub, "--host", "server.host", "Address to listen on");
  flags->add(*sub, "--port", "server.port", "Port to listen on; 0 = any free port");
  flags->add(*sub, "--model", "worker.model", "Checkpoint folder; default: the embedded model");
  flags->add(*sub, "--device", "worker.device", "auto, cpu, cuda, cuda:N, cuda:all or a list: one worker each");
  flags->add(*sub, "--quant", "engine.quant", "int8 or int4: the language model's layers in fewer bits");
  flags->add(*sub, "--tls", "tls.mode", "off, auto (a self-signed certificate) or file (tls.cert, tls.key)");
  sub->callback([flags, &chosen] { chosen = [flags] { return serve(*flags); }; });
}

} // namespace parley::app
