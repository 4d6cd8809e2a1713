#include <caf/all.hpp>

#include <iostream>

// Two actors increment the same int without synchronisation, as a buggy handler of ours might. The `tsan` preset must
// report the race through an instrumented CAF; with Debian's CAF a suppression would hide it.

namespace {

using counting_actor = caf::typed_actor<caf::reacts_to<int>>;

class counting : public counting_actor::base {
public:
  counting(caf::actor_config& config, int& count) : counting_actor::base(config), count_(count) {}

protected:
  behavior_type make_behavior() override {
    return {[this](int left) {
      ++count_;
      if (left == 0) return quit();
      send(this, left - 1);
    }};
  }

private:
  int& count_;
};

} // namespace

int main() {
  int count = 0;
  caf::actor_system_config config;
  config.set("scheduler.max-threads", std::size_t{2});
  {
    caf::actor_system system(config);
    for (int i = 0; i < 2; ++i) caf::anon_send(system.spawn<counting>(count), 2000);
  }
  std::cout << count << '\n';
}
