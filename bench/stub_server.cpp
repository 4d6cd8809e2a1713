#include "actors/server_core.hpp"
#include "base/memory.hpp"
#include "bench/instant_engine.hpp"
#include "config/load.hpp"
#include "net/server.hpp"
#include "net/signals.hpp"

#include <condition_variable>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

// All of `parley serve` except the model: the engine answers at once. It shows what the server itself costs.
//   stub_server [speak|converse] [section.key=value …]
// speak: each unit is answered with a second of sound instead of `listen`; converse: three are, after somebody spoke.
namespace {

namespace actors = parley::actors;
namespace inference = parley::inference;

/// What the main thread waits for.
struct news {
  void set(bool& what) {
    const std::lock_guard lock(mutex);
    what = true;
    changed.notify_all();
  }
  void wait(const bool& what) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return what; });
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool up = false;
  bool stop = false;
};

} // namespace

int main(int argc, char** argv) {
  parley::base::keep_freed_memory();
  parley::config::settings settings;
  auto how = parley::bench::manner::listens;
  settings.worker.max_sessions = 10'000;
  try {
    for (auto i = 1; i < argc; ++i) {
      if (std::string(argv[i]) == "speak")
        how = parley::bench::manner::speaks;
      else if (std::string(argv[i]) == "converse")
        how = parley::bench::manner::converses;
      else
        parley::config::apply_override(settings, argv[i]);
    }
  } catch (const parley::config::settings_error& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
  news told;
  const parley::net::process_signals signals([&](int) { told.set(told.stop); });
  actors::server_core core(settings, [&](const actors::worker_view& worker) {
    if (worker.state == actors::worker_state::up) told.set(told.up);
  });
  auto options = parley::net::options_from(settings);
  options.model = "stub";
  parley::net::server server(std::move(options), core);
  core.add_worker("none", [&](inference::engine::sink tell) {
    return std::make_unique<parley::bench::instant_engine>(how, settings.worker.max_sessions, std::move(tell));
  });
  told.wait(told.up);
  std::cout << "ready " << server.url() << std::endl;
  told.wait(told.stop);
  core.drain();
  server.stop(std::chrono::seconds(2));
  core.stop();
}
