#include "actors/cluster/node_worker.hpp"

#include "actors/cluster/actor_threads.hpp"
#include "actors/settings_parts.hpp"
#include "actors/worker/gpu_worker.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace parley::actors {

namespace {

/// Tells the registrations that the engine is loaded; they may be created later than the engine's thread.
class up_teller {
public:
  void engine_is_up(const inference::engine_info& info) {
    const std::lock_guard lock(mutex_);
    info_ = info;
    tell();
  }
  void members_are_there(std::vector<gateway_registration_inner> members) {
    const std::lock_guard lock(mutex_);
    members_ = std::move(members);
    tell();
  }

private:
  void tell() {
    if (!info_) return;
    for (const auto& member : members_) caf::anon_send(member, engine_up{*info_});
    members_.clear();
  }

  std::mutex mutex_;
  std::optional<inference::engine_info> info_;
  std::vector<gateway_registration_inner> members_;
};

} // namespace

node_worker::node_worker(const config::settings& settings, std::string name, engine_factory make,
                         std::vector<node_dialer> gateways, std::function<void(registration_event)> tell)
    : system_(prepare(config_, silence_from(settings))) {
  const auto teller = std::make_shared<up_teller>();
  worker_ = system_.spawn<gpu_worker>([make = std::move(make), teller](inference::engine::sink sink) {
    auto engine = make(std::move(sink));
    teller->engine_is_up(engine->info());
    return engine;
  });
  registration_options options;
  options.name = std::move(name);
  options.patience = silence_from(settings);
  options.longest_pause = rejoin_from(settings);
  for (auto& dial : gateways) {
    members_.push_back(system_.spawn<gateway_registration>(options, worker_, std::move(dial), tell));
    members_.back()->attach_functor([tell, this](const caf::error& why) {
      // It has said itself why it ends, unless it did not mean to.
      if (why && why != caf::exit_reason::user_shutdown)
        tell({registration_event::what::ended, "the link to the gateway has failed: " + system_.render(why)});
    });
  }
  teller->members_are_there(members_);
}

node_worker::~node_worker() {
  stop();
}

void node_worker::stop() {
  if (!worker_) return;
  for (const auto& member : members_) caf::anon_send_exit(member, caf::exit_reason::user_shutdown);
  caf::anon_send_exit(worker_, caf::exit_reason::user_shutdown);
  members_.clear();
  worker_ = nullptr;
  system_.await_all_actors_done();
}

void node_worker::leave() {
  caf::anon_send(worker_, worker_stop{});
}

} // namespace parley::actors
