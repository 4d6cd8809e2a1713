#include "base/byte_budget.hpp"

#include "base/expect.hpp"

namespace parley::base {

byte_budget::byte_budget(std::size_t of_all, std::size_t of_each)
    : ledger_(std::make_shared<ledger>(of_all, of_each)) {}

bool byte_budget::has_room(const std::string& owner) const {
  const std::lock_guard lock(ledger_->mutex);
  const auto its = ledger_->each.find(owner);
  return ledger_->all < ledger_->of_all && (its == ledger_->each.end() || its->second < ledger_->of_each);
}

std::optional<byte_budget::share> byte_budget::take(std::string owner, std::size_t bytes) const {
  auto its = open(std::move(owner));
  if (!its.grow_to(bytes)) return std::nullopt;
  return its;
}

bool byte_budget::share::grow_to(std::size_t bytes) {
  if (bytes <= bytes_) return true;
  const auto more = bytes - bytes_;
  const std::lock_guard lock(of_->mutex);
  const auto its = of_->each.find(owner_);
  const std::size_t held = its == of_->each.end() ? 0 : its->second;
  if (more > of_->of_all - of_->all || more > of_->of_each - held) return false;
  of_->each[owner_] = held + more;
  of_->all += more;
  bytes_ = bytes;
  return true;
}

byte_budget::share::share(share&& other) noexcept
    : of_(std::move(other.of_)), owner_(std::move(other.owner_)), bytes_(std::exchange(other.bytes_, 0)) {}

byte_budget::share& byte_budget::share::operator=(share&& other) noexcept {
  if (this == &other) return *this;
  shrink_to(0);
  of_ = std::move(other.of_);
  owner_ = std::move(other.owner_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void byte_budget::share::shrink_to(std::size_t bytes) {
  if (bytes_ <= bytes) return;
  const auto less = bytes_ - bytes;
  const std::lock_guard lock(of_->mutex);
  const auto its = of_->each.find(owner_);
  const bool held = its != of_->each.end() && its->second >= less && of_->all >= less;
  PARLEY_EXPECT(held, "what goes was counted");
  if (!held) return;
  bytes_ = bytes;
  of_->all -= less;
  its->second -= less;
  if (its->second == 0) of_->each.erase(its);
}

} // namespace parley::base
