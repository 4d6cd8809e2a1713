#include "actors/server_core.hpp"
#include "app/commands.hpp"
#include "app/default_voice.hpp"
#include "app/logging.hpp"
#include "app/node_settings.hpp"
#include "app/service.hpp"
#include "net/cluster/node_listener.hpp"
#include "net/server.hpp"

#include <spdlog/spdlog.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

namespace parley::app {

namespace {

int gateway(const service_flags& flags) {
  const auto settings = settings_from(flags);
  prepare_process();
  start_logging(settings);
  auto options = net::options_from(settings);
  options.model.clear(); // that of its workers
  if (!settings.voice.default_wav.empty()) options.voice = [voice = load_default_voice(settings, {})] { return voice; };

  service_news news;
  const stop_requests requests(news);
  actors::server_core core(settings, {}, actors::server_core::nodes::may_join,
                           [&news](std::string why) { news.broken(std::move(why)); });
  auto nodes = std::make_unique<net::node_listener>(settings, core);
  auto peers = dialers_of(settings, settings.nodes.peers);
  if (!peers.dial.empty()) core.copy_to_peers(std::move(peers.dial), node_name(settings));
  net::server server(std::move(options), core);
  spdlog::info("workers join at {}", nodes->address());
  std::cout << "ready " << server.url() << std::endl;
  auto parts = std::move(peers.read_again);
  parts.insert(parts.end(), {[&] { return server.read_again(); }, [&] { return nodes->read_again(); }});
  auto watch = watch_secrets(settings, news);
  auto end = news.wait();
  for (; end.kind == service_news::what::asked_to_reload; end = news.wait()) reload(parts);
  watch.reset();
  const bool broken = end.kind == service_news::what::broken;
  if (broken)
    std::cerr << "parley: " << end.reason << std::endl;
  else
    spdlog::info("asked to stop");
  core.drain();
  server.stop(flush_time);
  nodes.reset();
  core.stop();
  return broken ? 1 : 0; // the supervisor of this process starts it again
}

} // namespace

void add_gateway(CLI::App& app, job& chosen) {
  auto* sub = app.add_subcommand("gateway", "Serves clients with the workers that join it");
  const auto flags = std::make_shared<service_flags>();
  flags->add_common(*sub);
  flags->add(*sub, "--host", "server.host", "Address to listen on");
  flags->add(*sub, "--port", "server.port", "Port to listen on; 0 = any free port");
  flags->add(*sub, "--tls", "tls.mode", "off, auto (a self-signed certificate) or file (tls.cert, tls.key)");
  flags->add(*sub, "--nodes-host", "nodes.host", "Address at which workers join");
  flags->add(*sub, "--nodes-port", "nodes.port", "Port at which workers join; 0 = any free port");
  sub->callback([flags, &chosen] { chosen = [flags] { return gateway(*flags); }; });
}

} // namespace parley::app
