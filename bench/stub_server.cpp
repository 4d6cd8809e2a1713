#include "actors/house.hpp"
#include "config/load.hpp"
#include "net/server.hpp"
#include "net/signals.hpp"

#include <condition_variable>
#include <deque>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// Everything of `parley serve` but the model: the engine answers at once. It shows what the server itself costs.
//   stub_server [speak] [section.key=value …]      speak: each unit is answered with a second of sound instead of `listen`
namespace {

namespace actors = parley::actors;
namespace inference = parley::inference;

class instant_engine final : public inference::engine {
public:
  instant_engine(bool speaks, int slots, sink tell)
      : tell_(std::move(tell)), second_(std::make_shared<const std::vector<float>>(24'000, 0.1F)) {
    info_.model = "stub";
    info_.device = "none";
    info_.slots = slots;
    info_.context_tokens = 1 << 30;
    info_.hears = info_.sees = true;
    info_.speaks = speaks;
  }

  const inference::engine_info& info() const override { return info_; }

  void handle(inference::command&& order) override { inbox_.push_back(std::move(order)); }

  bool advance() override {
    while (!inbox_.empty()) {
      std::visit([this](const auto& each) { take(each); }, inbox_.front());
      inbox_.pop_front();
    }
    return false;
  }

private:
  void take(const inference::open_duplex& order) { tell_(inference::opened{order.session, 12, {}}); }
  void take(const inference::open_chat& order) { tell_(inference::opened{order.session, 0, {}}); }
  void take(const inference::close_session& order) { tell_(inference::closed{order.session}); }
  void take(const inference::cut&) {}
  void take(const inference::cancel_turn&) {}

  void take(const inference::submit_unit& unit) {
    inference::step_output answer{};
    answer.session = unit.session;
    answer.unit = unit.unit;
    answer.kind = info_.speaks ? inference::output_kind::audio : inference::output_kind::listen;
    if (info_.speaks) answer.audio = second_;
    tell_(std::move(answer));
  }

  void take(const inference::submit_turn& turn) {
    tell_(inference::chat_done{turn.session, turn.turn, inference::finish::turn_end, "Hello there.", nullptr, {}, {}});
  }

  sink tell_;
  inference::engine_info info_;
  std::deque<inference::command> inbox_;
  inference::pcm second_; ///< shared by all answers
};

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
  parley::config::settings settings;
  bool speaks = false;
  settings.worker.max_sessions = 10'000;
  try {
    for (auto i = 1; i < argc; ++i) {
      if (std::string(argv[i]) == "speak")
        speaks = true;
      else
        parley::config::apply_override(settings, argv[i]);
    }
  } catch (const parley::config::settings_error& e) {
    std::cerr << e.what() << '\n';
    return 2;
  }
  news told;
  const parley::net::stop_signals signals([&](int) { told.set(told.stop); });
  actors::house house(settings, [&](const actors::worker_view& worker) {
    if (worker.state == actors::worker_state::up) told.set(told.up);
  });
  auto options = parley::net::options_from(settings);
  options.model = "stub";
  options.voice = [] { return nullptr; };
  parley::net::server server(std::move(options), house);
  house.add_worker("none", [&](inference::engine::sink tell) {
    return std::make_unique<instant_engine>(speaks, settings.worker.max_sessions, std::move(tell));
  });
  told.wait(told.up);
  std::cout << "ready " << server.url() << std::endl;
  told.wait(told.stop);
  house.drain();
  server.stop(std::chrono::seconds(2));
}
