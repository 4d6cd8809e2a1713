#pragma once

#include "base/byte_budget.hpp"
#include "protocol/openai/shared/budget.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace parley::actors {

/// The budgets of all owners of connections that speak OpenAI's dialects. Those that nobody uses, and of which nothing is
/// spent, are forgotten. Thread-safe.
class owner_budgets {
public:
  using budget = protocol::openai::owner_budget;

  /// `kept`: how much may be held for all of them, and for each.
  explicit owner_budgets(base::byte_budget kept) : kept_(std::move(kept)) {}

  std::shared_ptr<budget> of(const std::string& owner, protocol::openai::budget_time now) {
    const std::lock_guard lock(mutex_);
    if (all_.size() >= sweep_at_) {
      std::erase_if(all_, [&](const auto& each) { return each.second.use_count() == 1 && each.second->full(now); });
      sweep_at_ = std::max<std::size_t>(1024, 2 * all_.size());
    }
    auto& found = all_[owner];
    if (!found) found = std::make_shared<budget>(kept_, owner);
    return found;
  }

  const base::byte_budget& kept() const { return kept_; }

  std::size_t remembered() const {
    const std::lock_guard lock(mutex_);
    return all_.size();
  }

private:
  const base::byte_budget kept_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<budget>> all_;
  std::size_t sweep_at_ = 1024;
};

} // namespace parley::actors
