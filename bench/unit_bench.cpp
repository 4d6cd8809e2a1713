#include "actors/server_core.hpp"
#include "bench/instant_engine.hpp"
#include "client/load_material.hpp"
#include "client/ws_client.hpp"
#include "net/server.hpp"

#include <benchmark/benchmark.h>
#include <boost/asio/io_context.hpp>
#include <spdlog/spdlog.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <string>

// One second of one person from socket to socket, through everything but a model: 85 KB come in, `listen` or a second
// of sound goes out. The time is that of a round trip; the CPU time is that of the whole process, client included.
namespace {

namespace actors = parley::actors;
namespace client = parley::client;
namespace protocol = parley::protocol;

/// A server with one worker on a free port of the loopback.
class stage {
public:
  explicit stage(bool speaks) {
    parley::config::settings settings;
    settings.server.port = 0;
    std::promise<void> up;
    core_ = std::make_unique<actors::server_core>(settings, [&](const actors::worker_view& worker) {
      if (worker.state == actors::worker_state::up) up.set_value();
    });
    auto options = parley::net::options_from(settings);
    options.model = "stub";
    server_ = std::make_unique<parley::net::server>(std::move(options), *core_);
    core_->add_worker("none", [speaks](parley::inference::engine::sink tell) {
      return std::make_unique<parley::bench::instant_engine>(
          speaks ? parley::bench::manner::speaks : parley::bench::manner::listens, 4, std::move(tell));
    });
    up.get_future().wait();
  }

  ~stage() {
    core_->drain();
    server_->stop(std::chrono::seconds(1));
    core_->stop();
  }

  std::string url() const { return server_->url(); }

private:
  std::unique_ptr<actors::server_core> core_;
  std::unique_ptr<parley::net::server> server_;
};

/// A person who speaks one second after another and waits for each answer.
class talker {
public:
  explicit talker(const std::string& url)
      : material_(client::load_material::make({}, {}, {}, 16, {.resume = false}).value()),
        socket_(loop_.get_executor(), {[] {}, [this](std::string_view frame) { hear(frame); },
                                       [this](const client::ws_client::ending& end) {
                                         ended_ = end.error;
                                         gone_ = true;
                                       }}) {
    socket_.connect(client::parse_server_url(url).value(), "mode=audio");
    wait_for("session.queue_done");
    socket_.send(material_.init(protocol::dialect::current));
    wait_for("session.created");
  }

  void second() {
    socket_.send(material_.unit(protocol::mode::audio, protocol::dialect::current, 0, false));
    wait_for("response.output.delta");
  }

private:
  void hear(std::string_view frame) {
    heard_ = heard_ || frame.substr(0, 100).find(awaited_) != std::string_view::npos;
  }

  void wait_for(std::string_view type) {
    awaited_ = type;
    heard_ = false;
    while (!heard_) {
      loop_.run_one();
      if (gone_) throw std::runtime_error("the connection ended: " + ended_);
    }
  }

  boost::asio::io_context loop_;
  client::load_material material_;
  std::string ended_;
  std::string_view awaited_;
  bool heard_ = false, gone_ = false;
  client::ws_client socket_;
};

void second_from_socket_to_socket(benchmark::State& state) {
  spdlog::set_level(spdlog::level::warn);
  const stage server(state.range(0) != 0);
  talker person(server.url());
  for (auto _ : state) person.second();
}
BENCHMARK(second_from_socket_to_socket)
    ->ArgName("speaks")
    ->Arg(0)
    ->Arg(1)
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime()
    ->MeasureProcessCPUTime();

} // namespace

BENCHMARK_MAIN();
