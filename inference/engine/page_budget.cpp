#include "inference/engine/page_budget.hpp"

#include <algorithm>
#include <cmath>

namespace parley::inference {

std::vector<session_id> without_pages(std::span<const page_claim> claims, int free_pages) {
  std::vector<page_claim> order(claims.begin(), claims.end());
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.arrival < b.arrival; });
  std::vector<session_id> waiting;
  for (const auto& claim : order) {
    if (claim.pages <= 0) continue;
    if (waiting.empty() && claim.pages <= free_pages)
      free_pages -= claim.pages;
    else
      waiting.push_back(claim.session);
  }
  return waiting;
}

void page_forecast::ended(int pages) {
  constexpr auto weight = 0.1;
  usual_ += (std::clamp(pages, 1, limit_) - usual_) * weight;
}

int page_forecast::sessions(std::span<const int> held) const {
  auto room = static_cast<double>(pages_);
  for (const auto pages : held) room -= std::max(static_cast<double>(pages), usual_);
  const auto open = static_cast<int>(held.size());
  if (room < limit_) return std::max(open, 1);
  return open + 1 + static_cast<int>(std::floor((room - limit_) / usual_));
}

} // namespace parley::inference
