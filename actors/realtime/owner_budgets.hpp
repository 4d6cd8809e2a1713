#pragma once

#include "protocol/realtime/budget.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace parley::actors {

/// The budgets of all owners of connections that speak OpenAI's dialects. Those that nobody uses, and of which nothing is
/// spent, are forgotten. Thread-safe.
class owner_budgets {
public:
  using budget = protocol::realtime::owner_budget;

  std::shared_ptr<budget> of(const std::string& owner, protocol::realtime::budget_time now) {
    const std::lock_guard lock(mutex_);
    if (all_.size() >= sweep_at_) {
      std::erase_if(all_, [&](const auto& each) { return each.second.use_count() == 1 && each.second->full(now); });
      sweep_at_ = std::max<std::size_t>(1024, 2 * all_.size());
    }
    auto& found = all_[owner];
    if (!found) found = std::make_shared<budget>();
    return found;
  }

  std::size_t remembered() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

private:
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<budget>> all_;
  std::size_t sweep_at_ = 1024;
};

} // namespace parley::actors
