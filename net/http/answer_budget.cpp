#include "net/http/answer_budget.hpp"

#include "base/expect.hpp"

namespace parley::net {

answer_budget::answer_budget(std::size_t of_all, std::size_t of_each)
    : of_all_(of_all), of_each_(of_each), ledger_(std::make_shared<ledger>()) {}

bool answer_budget::has_room(const std::string& owner) const {
  const std::lock_guard lock(ledger_->mutex);
  const auto its = ledger_->each.find(owner);
  return ledger_->all < of_all_ && (its == ledger_->each.end() || its->second < of_each_);
}

std::optional<answer_budget::share> answer_budget::take(const std::string& owner, std::size_t bytes) {
  std::string whose = owner;
  const std::lock_guard lock(ledger_->mutex);
  const auto its = ledger_->each.find(owner);
  const std::size_t held = its == ledger_->each.end() ? 0 : its->second;
  if (bytes > of_all_ - ledger_->all || bytes > of_each_ - held) return std::nullopt;
  ledger_->each[owner] = held + bytes;
  ledger_->all += bytes;
  return share(ledger_, std::move(whose), bytes);
}

answer_budget::share& answer_budget::share::operator=(share&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  of_ = std::move(other.of_);
  owner_ = std::move(other.owner_);
  bytes_ = other.bytes_;
  return *this;
}

void answer_budget::share::give_back() {
  if (!of_) return;
  const std::lock_guard lock(of_->mutex);
  const auto its = of_->each.find(owner_);
  const bool held = its != of_->each.end() && its->second >= bytes_ && of_->all >= bytes_;
  PARLEY_EXPECT(held, "an answer that goes was counted");
  if (!held) return;
  of_->all -= bytes_;
  its->second -= bytes_;
  if (its->second == 0) of_->each.erase(its);
}

} // namespace parley::net
