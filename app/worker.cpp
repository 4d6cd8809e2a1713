#include "actors/cluster/node_worker.hpp"
#include "app/commands.hpp"
#include "app/cuda_library.hpp"
#include "app/logging.hpp"
#include "app/node_settings.hpp"
#include "app/service.hpp"
#include "app/worker_processes.hpp"
#include "config/load.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <utility>

namespace parley::app {

namespace {

int worker(const service_flags& flags) {
  auto settings = settings_from(flags);
  if (settings.nodes.join.empty()) throw config::settings_error("--join HOST:PORT names the gateway");
  if (const char* given = std::getenv(secret_variable)) settings.nodes.secret = given;
  prepare_process();
  start_logging(settings);
  load_cuda_library(settings.worker.device);
  resolve_model(settings);

  service_news news;
  const stop_requests requests(news);
  auto gateways = dialers_of(settings, settings.nodes.join);
  actors::node_worker node(
      settings, node_name(settings),
      [settings](inference::engine::sink tell) { return inference::make_engine(settings, std::move(tell)); },
      std::move(gateways.dial),
      [&news](const actors::registration_event& what) {
        using enum actors::registration_event::what;
        if (what.kind == ended) news.worker_down("the model cannot be served: " + what.reason);
        if (what.kind == refused) news.worker_down("cannot join: " + what.reason);
      });
  const auto watch = watch_secrets(settings, news);
  auto next = news.wait();
  for (; next.kind == service_news::what::asked_to_reload; next = news.wait()) reload(gateways.read_again);
  if (next.kind == service_news::what::worker_down) {
    // The supervisor of this process restarts it.
    std::cerr << "parley: " << next.reason << std::endl;
    node.stop();
    return 1;
  }
  spdlog::info("asked to stop");
  node.leave();
  const auto grace = std::chrono::duration<double>(settings.limits.drain_seconds);
  const auto latest =
      std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(grace);
  while (const auto more = news.wait_until(latest))
    if (more->kind != service_news::what::asked_to_reload) break;
  node.stop();
  return 0;
}

} // namespace

void add_worker(CLI::App& app, job& chosen) {
  auto* sub = app.add_subcommand("worker", "Runs the model for a gateway");
  const auto flags = std::make_shared<service_flags>();
  flags->add_common(*sub);
  flags->add(*sub, "--join", "nodes.join", "HOST:PORT of the gateway");
  flags->add(*sub, "--model", "worker.model", "Checkpoint folder; default: the embedded model");
  flags->add(*sub, "--device", "worker.device", "auto, cpu, cuda or cuda:N");
  flags->add(*sub, "--quant", "engine.quant", "int8 or int4: the language model's layers in fewer bits");
  sub->callback([flags, &chosen] { chosen = [flags] { return worker(*flags); }; });
}

} // namespace parley::app
