#include "actors/cluster/node_worker.hpp"
#include "app/commands.hpp"
#include "app/logging.hpp"
#include "app/service.hpp"
#include "config/load.hpp"
#include "net/cluster/node_dialer.hpp"

#include <spdlog/spdlog.h>

#include <array>
#include <chrono>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace parley::app {

namespace {

std::string node_name(const config::settings& settings) {
  if (!settings.nodes.name.empty()) return settings.nodes.name;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) return "worker";
  return host.data();
}

int worker(const service_flags& flags) {
  auto settings = settings_from(flags);
  if (settings.nodes.join.empty()) throw config::settings_error("--join HOST:PORT names the gateway");
  prepare_process();
  start_logging(settings);
  resolve_model(settings);

  service_news news;
  const stop_requests requests(news);
  std::vector<actors::node_dialer> gateways;
  std::istringstream addresses(settings.nodes.join);
  for (std::string address; addresses >> address;)
    gateways.push_back(
        [dialer = std::make_shared<net::node_dialer>(settings, address)](auto done) { dialer->dial(std::move(done)); });
  actors::node_worker node(
      settings, node_name(settings),
      [settings](inference::engine::sink tell) { return inference::make_engine(settings, std::move(tell)); },
      std::move(gateways),
      [&news](const actors::registration_event& what) {
        using enum actors::registration_event::what;
        if (what.kind == ended) news.worker_down("the model cannot be served: " + what.reason);
        if (what.kind == refused) news.worker_down("cannot join: " + what.reason);
      });
  const auto next = news.wait();
  if (next.kind == service_news::what::worker_down) {
    // The supervisor of this process restarts it.
    std::cerr << "parley: " << next.reason << std::endl;
    node.stop();
    return 1;
  }
  spdlog::info("asked to stop");
  node.leave();
  const auto grace = std::chrono::duration<double>(settings.limits.drain_seconds);
  news.wait_until(std::chrono::steady_clock::now() +
                  std::chrono::duration_cast<std::chrono::steady_clock::duration>(grace));
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
