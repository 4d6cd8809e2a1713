#include "inference/engine/omni/omni_engine.hpp"
#include "inference/logger.hpp"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

// The pages of the KV pool, when there are not enough for everybody: the youngest sessions wait.
namespace parley::inference {

/// What the pass would take from the pool.
std::vector<page_claim> omni_engine::claims_of(const schedule& plan) {
  std::vector<page_claim> claims;
  auto add = [&](const task& t, int pages) {
    auto& s = t.owner();
    s.most_pages = std::max(s.most_pages, s.cache.pages() + pages);
    claims.push_back({s.id, s.arrival, pages});
  };
  claims.reserve(plan.decode.size() + plan.slide.size() + plan.prefill.size());
  for (const auto id : plan.decode)
    if (const auto* t = sessions_.needing(stage::decode, id)) add(*t, t->owner().cache.pages_to_take(1));
  for (const auto& piece : plan.slide)
    if (const auto* t = sessions_.needing(stage::slide, piece.session)) add(*t, t->pages_to_slide());
  for (const auto& piece : plan.prefill)
    if (const auto* t = sessions_.needing(stage::prefill, piece.session))
      add(*t, t->owner().cache.pages_to_take(piece.rows));
  return claims;
}

session* omni_engine::youngest_with_pages(std::uint64_t after) {
  session* youngest = nullptr;
  sessions_.each_session([&](session& s) {
    if (s.arrival > after && s.cache.pages() > 0 && (!youngest || s.arrival > youngest->arrival)) youngest = &s;
  });
  return youngest;
}

/// Moves the session's rows to the host's memory. False, with nothing changed, if there is too little memory for that.
bool omni_engine::parks(session& s) {
  try {
    s.cache.park();
    return true;
  } catch (const std::exception& e) {
    if (sessions_.loses_device(e.what())) return false;
    log_info(std::string("engine: a session can't make room for an older one: ") + e.what());
    return false;
  }
}

/// Takes out of the plan whoever must wait for pages, and returns who those are. The oldest session of the plan
/// goes on: for it, the youngest ones move their rows to the host's memory. A session that may go on has its rows in
/// the pool.
std::vector<session_id> omni_engine::share_pages(schedule& plan) {
  auto claims = claims_of(plan);
  auto waiting = without_pages(claims, free_pages());
  while (!waiting.empty()) {
    const auto oldest = std::ranges::min_element(claims, {}, [](const page_claim& c) {
      return std::pair(c.pages <= 0, c.arrival); // of those that take any
    });
    if (std::ranges::find(waiting, oldest->session) == waiting.end()) break;
    auto* youngest = youngest_with_pages(oldest->arrival);
    if (!youngest) break; // older sessions hold the rest
    if (!parks(*youngest)) break;
    claims = claims_of(plan);
    waiting = without_pages(claims, free_pages());
  }
  auto waits = [&](session_id id) { return std::ranges::find(waiting, id) != waiting.end(); };
  std::erase_if(plan.decode, waits);
  for (auto* pieces : {&plan.slide, &plan.prefill})
    std::erase_if(*pieces, [&](const auto& piece) { return waits(piece.session); });
  for (const auto& claim : claims)
    if (auto* s = sessions_.find(claim.session); s && s->cache.parked() && !waits(claim.session))
      sessions_.step(*s->running, [](task& t) { t.owner().cache.restore(); });
  return waiting;
}

} // namespace parley::inference
