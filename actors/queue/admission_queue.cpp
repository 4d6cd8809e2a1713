#include "actors/queue/admission_queue.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <utility>

namespace parley::actors {

namespace {

using namespace std::chrono_literals;

constexpr auto coalesce = 500ms;      // minimum time between two reports of a changed position
constexpr auto refresh = 3000ms;      // maximum time between two reports
constexpr auto refresh_early = 250ms; // a walk along the queue also reports to those that are due soon ...
constexpr auto walk_gap = 100ms;      // ... so that nobody is late although walks are this far apart

double seconds_between(admission_queue::time_point from, admission_queue::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

} // namespace

admission_queue::admission_queue(queue_settings settings)
    : settings_(settings), lengths_(settings.base_chat_s, settings.base_audio_s, settings.base_video_s) {}

queue_events admission_queue::enqueue(ticket_key ticket, std::string ticket_id, protocol::mode kind, bool at_head,
                                      time_point now, queue_wish wanted) {
  PARLEY_ASSERT(!holders_.contains(ticket) && !order_of_.contains(ticket), "a ticket is used once");
  queue_events words;
  const auto refuse = [&](protocol::error_code code) {
    words.emplace_back(ticket_refused{ticket, code});
    return std::move(words);
  };
  if (draining_) return refuse(protocol::error_code::service_unavailable);
  if (wanted.background) {
    if (const auto why = enqueue_aside(ticket, kind, now, words)) return refuse(*why);
    return words;
  }
  const bool first = std::all_of(line_.begin(), line_.end(), [](const auto& each) {
    return each.second.wanted.avoid != 0; // there may be a free slot, but none that this ticket accepts
  });
  if (at_head || first) {
    if (const auto worker = best_for(wanted); worker != workers_.end()) {
      grant(ticket, kind, wanted, worker, now, words);
      return words;
    }
  }
  if (!at_head) {
    if (workers_.empty()) return refuse(protocol::error_code::service_unavailable);
    if (settings_.capacity == 0) return refuse(protocol::error_code::worker_busy);
    if (line_.size() >= settings_.capacity) return refuse(protocol::error_code::queue_full);
  }
  const std::int64_t order = at_head ? head_++ : tail_++;
  order_of_.emplace(ticket, order);
  line_.emplace(order, waiter{ticket, std::move(ticket_id), kind, 0, now, wanted});
  if (at_head) positions_changed(now);
  if (workers_.empty() && !patience_ends_) patience_ends_ = now + settings_.no_worker;

  tell_queued({order}, now, words);
  recall(words);
  return words;
}

/// Returns why it is refused, if it is.
std::optional<protocol::error_code> admission_queue::enqueue_aside(ticket_key ticket, protocol::mode kind,
                                                                   time_point now, queue_events& words) {
  if (workers_.empty()) return protocol::error_code::service_unavailable;
  if (aside_.size() >= settings_.capacity && (free_slots() == 0 || !line_.empty()))
    return settings_.capacity == 0 ? protocol::error_code::worker_busy : protocol::error_code::queue_full;
  aside_.push_back({ticket, kind});
  serve_aside(now, words);
  return std::nullopt;
}

void admission_queue::serve_aside(time_point now, queue_events& words) {
  constexpr queue_wish background{.background = true};
  while (line_.empty() && !aside_.empty()) {
    const auto worker = best_for(background);
    if (worker == workers_.end()) return;
    const auto [ticket, kind] = aside_.front();
    aside_.pop_front();
    grant(ticket, kind, background, worker, now, words);
  }
}

/// As many background sessions as there are tickets that wait give their slots back.
void admission_queue::recall(queue_events& words) {
  if (held_in_background_ == 0) return;
  std::size_t wanted = line_.size();
  for (const auto& [ticket, each] : holders_) wanted -= each.recalled && wanted > 0 ? 1 : 0;
  for (auto& [ticket, each] : holders_) {
    if (wanted == 0) return;
    if (!each.background || each.recalled) continue;
    each.recalled = true;
    --wanted;
    words.emplace_back(ticket_recalled{ticket});
  }
}

/// `orders` in ascending order.
void admission_queue::tell_queued(const std::vector<std::int64_t>& orders, time_point now, queue_events& words) {
  slot_forecast slots = forecast(now);
  int position = 0;
  auto next = orders.begin();
  for (auto it = line_.begin(); it != line_.end() && next != orders.end(); ++it) {
    ++position;
    const double wait_s = slots.next(lengths_.expected_s(it->second.kind));
    if (it->first != *next) continue;
    ++next;
    it->second.told_position = position;
    words.emplace_back(
        ticket_queued{it->second.ticket, {position, wait_s, it->second.ticket_id, static_cast<int>(line_.size())}});
  }
  next_walk_ = std::min(next_walk_.value_or(now + refresh), now + refresh);
}

queue_events admission_queue::cancel(ticket_key ticket, time_point now) {
  if (const auto it = order_of_.find(ticket); it != order_of_.end()) {
    leave_line(line_.find(it->second));
    positions_changed(now);
  }
  std::erase_if(aside_, [&](const background_waiter& each) { return each.ticket == ticket; });
  queue_events words;
  serve_aside(now, words);
  return words;
}

void admission_queue::accept(ticket_key ticket, time_point now) {
  const auto it = holders_.find(ticket);
  if (it == holders_.end()) return;
  it->second.accepted = true;
  it->second.since = now;
}

queue_events admission_queue::free(ticket_key ticket, time_point now) {
  queue_events words;
  const auto it = holders_.find(ticket);
  if (it == holders_.end()) return words;
  const holder& over = it->second;
  if (over.accepted && !over.background) lengths_.measured(over.kind, seconds_between(over.since, now));
  held_in_background_ -= over.background ? 1 : 0;
  auto& where = workers_.at(over.worker);
  PARLEY_ASSERT(where.busy > 0, "a slot that is freed was busy");
  --where.busy;
  holders_.erase(it);
  serve(now, words);
  return words;
}

void admission_queue::retype(ticket_key ticket, protocol::mode kind) {
  if (const auto it = holders_.find(ticket); it != holders_.end()) it->second.kind = kind;
  if (const auto it = order_of_.find(ticket); it != order_of_.end()) line_.at(it->second).kind = kind;
}

queue_events admission_queue::offer(worker_key worker, int slots, time_point now) {
  queue_events words;
  workers_[worker].offered = std::max(0, slots);
  patience_ends_.reset();
  serve(now, words);
  return words;
}

queue_events admission_queue::worker_down(worker_key worker, time_point now, std::vector<successor> successors) {
  queue_events words;
  if (workers_.erase(worker) == 0) return words;
  std::vector<waiter> displaced;
  displaced.reserve(successors.size());
  for (auto& each : successors) {
    const auto held = holders_.find(each.lost);
    PARLEY_ASSERT(held != holders_.end() && held->second.worker == worker, "whoever lost a slot had one");
    if (held->second.background) {
      aside_.push_back({each.ticket, held->second.kind});
      continue;
    }
    displaced.push_back({each.ticket,
                         std::move(each.ticket_id),
                         held->second.kind,
                         0,
                         now,
                         {.patient = true, .prompt = held->second.prompt}});
  }
  std::erase_if(holders_, [&](const auto& each) {
    if (each.second.worker != worker) return false;
    held_in_background_ -= each.second.background ? 1 : 0;
    return true;
  });
  if (workers_.empty() || draining_) refuse_aside(words);
  if (draining_) {
    for (const auto& each : displaced)
      words.emplace_back(ticket_refused{each.ticket, protocol::error_code::service_unavailable});
    return words;
  }
  std::vector<std::int64_t> orders;
  for (auto& each : displaced) {
    order_of_.emplace(each.ticket, head_);
    orders.push_back(head_);
    line_.emplace(head_++, std::move(each));
  }
  if (workers_.empty() && !line_.empty()) patience_ends_ = now + settings_.no_worker;
  if (orders.empty()) {
    serve_aside(now, words);
    return words;
  }
  positions_changed(now);
  serve(now, words);
  std::erase_if(orders, [&](std::int64_t each) { return !line_.contains(each); });
  if (!orders.empty()) tell_queued(orders, now, words);
  recall(words);
  return words;
}

void admission_queue::make_impatient(ticket_key ticket, time_point now) {
  const auto it = order_of_.find(ticket);
  if (it == order_of_.end()) return;
  line_.at(it->second).wanted.patient = false;
  if (workers_.empty() && !patience_ends_) patience_ends_ = now + settings_.no_worker;
}

std::optional<worker_key> admission_queue::worker_of(ticket_key ticket) const {
  const auto found = holders_.find(ticket);
  return found == holders_.end() ? std::nullopt : std::optional(found->second.worker);
}

std::vector<ticket_key> admission_queue::holders_of(worker_key worker) const {
  std::vector<ticket_key> all;
  for (const auto& [ticket, of] : holders_)
    if (of.worker == worker) all.push_back(ticket);
  std::ranges::sort(all);
  return all;
}

queue_events admission_queue::drain(time_point) {
  queue_events words;
  draining_ = true;
  refuse(protocol::error_code::service_unavailable, true, words);
  refuse_aside(words);
  return words;
}

queue_events admission_queue::tick(time_point now) {
  queue_events words;
  if (patience_ends_ && *patience_ends_ <= now) {
    patience_ends_.reset();
    refuse(protocol::error_code::service_unavailable, false, words);
  }
  if (!next_walk_ || *next_walk_ > now) return words;
  last_walk_ = now;
  next_walk_.reset();
  slot_forecast slots = forecast(now);
  int position = 0;
  for (auto& [order, who] : line_) {
    ++position;
    const double wait_s = slots.next(lengths_.expected_s(who.kind));
    const auto age = now - who.told_at;
    const bool moved = who.told_position != position;
    if ((moved && age >= coalesce) || age >= refresh - refresh_early) {
      who.told_position = position;
      who.told_at = now;
      words.emplace_back(
          position_changed{who.ticket, {position, wait_s, who.ticket_id, static_cast<int>(line_.size())}});
    }
    const time_point due = who.told_at + (who.told_position != position ? coalesce : refresh);
    next_walk_ = std::max(std::min(next_walk_.value_or(due), due), now + walk_gap);
  }
  return words;
}

std::optional<admission_queue::time_point> admission_queue::next_deadline() const {
  if (!patience_ends_ || !next_walk_) return patience_ends_ ? patience_ends_ : next_walk_;
  return std::min(*patience_ends_, *next_walk_);
}

std::vector<admission_queue::worker_view> admission_queue::workers() const {
  std::vector<worker_view> views;
  views.reserve(workers_.size());
  for (const auto& [worker, slots] : workers_) views.push_back({worker, slots.offered, slots.busy});
  return views;
}

std::vector<admission_queue::waiter_view> admission_queue::waiters(time_point now) const {
  std::vector<waiter_view> views;
  views.reserve(line_.size());
  slot_forecast slots = forecast(now);
  for (const auto& [order, who] : line_)
    views.push_back({who.ticket, who.ticket_id, who.kind, slots.next(lengths_.expected_s(who.kind))});
  return views;
}

std::vector<admission_queue::conversation_view> admission_queue::conversations(time_point now) const {
  std::vector<conversation_view> views;
  views.reserve(holders_.size());
  for (const auto& [ticket, each] : holders_) {
    const double elapsed_s = seconds_between(each.since, now);
    views.push_back({each.worker, each.kind, elapsed_s, remaining_s(lengths_.expected_s(each.kind), elapsed_s)});
  }
  return views;
}

double admission_queue::expected_wait_s(time_point now) const {
  if (free_slots() + static_cast<int>(held_in_background_) > static_cast<int>(line_.size())) return 0;
  slot_forecast slots = forecast(now);
  for (const auto& [order, who] : line_) slots.next(lengths_.expected_s(who.kind));
  return slots.next(lengths_.expected_s(protocol::mode::chat));
}

int admission_queue::free_slots() const {
  int sum = 0;
  for (const auto& [worker, slots] : workers_) sum += slots.free();
  return sum;
}

void admission_queue::serve(time_point now, queue_events& words) {
  bool moved = false;
  for (auto next = line_.begin(); next != line_.end();) {
    const auto who = next++;
    const auto worker = best_for(who->second.wanted);
    if (worker == workers_.end()) {
      if (who->second.wanted.avoid != 0) continue;
      break;
    }
    grant(who->second.ticket, who->second.kind, who->second.wanted, worker, now, words);
    leave_line(who);
    moved = true;
  }
  if (moved) positions_changed(now);
  serve_aside(now, words);
}

void admission_queue::grant(ticket_key ticket, protocol::mode kind, const queue_wish& wanted,
                            std::map<worker_key, slots>::iterator worker, time_point now, queue_events& words) {
  PARLEY_ASSERT(worker->second.free() > 0, "a slot that is granted is free");
  const bool fresh =
      holders_.emplace(ticket, holder{worker->first, kind, false, now, wanted.prompt, wanted.background}).second;
  PARLEY_ASSERT(fresh, "a ticket has one slot");
  ++worker->second.busy;
  held_in_background_ += wanted.background ? 1 : 0;
  words.emplace_back(ticket_granted{ticket, worker->first});
}

void admission_queue::refuse(protocol::error_code code, bool patient_ones_too, queue_events& words) {
  for (auto next = line_.begin(); next != line_.end();) {
    const auto who = next++;
    if (who->second.wanted.patient && !patient_ones_too) continue;
    words.emplace_back(ticket_refused{who->second.ticket, code});
    leave_line(who);
  }
  patience_ends_.reset();
  if (line_.empty()) next_walk_.reset();
}

void admission_queue::refuse_aside(queue_events& words) {
  for (const auto& each : aside_)
    words.emplace_back(ticket_refused{each.ticket, protocol::error_code::service_unavailable});
  aside_.clear();
}

void admission_queue::leave_line(line::iterator who) {
  order_of_.erase(who->second.ticket);
  line_.erase(who);
}

/// A position changed by a grant or a departure is not reported at once: one walk along the queue reports all changes,
/// `coalesce` after the previous walk.
void admission_queue::positions_changed(time_point now) {
  if (line_.empty()) {
    next_walk_.reset();
    patience_ends_.reset();
    return;
  }
  const time_point soon = std::max(now, last_walk_ + coalesce);
  next_walk_ = std::min(next_walk_.value_or(soon), soon);
}

std::vector<worker_candidate> admission_queue::candidates(std::optional<prefix_hash> prompt) const {
  std::vector<worker_candidate> all;
  all.reserve(workers_.size());
  for (const auto& [key, of] : workers_)
    all.push_back({key, of.busy, of.offered, prompt && std::ranges::find(of.prompts, *prompt) != of.prompts.end()});
  return all;
}

/// Returns end() if no suitable worker has a free slot.
std::map<worker_key, admission_queue::slots>::iterator admission_queue::best_for(const queue_wish& wanted) {
  auto all = candidates(wanted.prompt);
  std::erase_if(all, [&](const worker_candidate& each) { return each.worker == wanted.avoid; });
  const auto best = choose_worker(all);
  return best ? workers_.find(best->worker) : workers_.end();
}

std::optional<worker_key> admission_queue::rebalance(ticket_key ticket, prefix_hash prompt, time_point now,
                                                     queue_events& words) {
  const auto found = holders_.find(ticket);
  if (found == holders_.end()) return {};
  found->second.prompt = prompt;
  auto& where = found->second.worker;
  auto all = candidates(prompt);
  const auto own = std::ranges::find(all, where, &worker_candidate::worker);
  PARLEY_ASSERT(own != all.end() && own->busy > 0, "a slot is one of a worker that is there");
  --own->busy;
  const auto best = choose_worker(all);
  if (best && best->has_prompt && !own->has_prompt) {
    --workers_.at(where).busy;
    where = best->worker;
    ++workers_.at(where).busy;
    serve(now, words);
  } else if (!own->has_prompt) {
    workers_.at(where).prompts.push_back(prompt); // soon it will have the prompt, and report it
  }
  return where;
}

void admission_queue::prompts_at(worker_key worker, std::vector<prefix_hash> prompts) {
  if (const auto found = workers_.find(worker); found != workers_.end()) found->second.prompts = std::move(prompts);
}

slot_forecast admission_queue::forecast(time_point now) const {
  slot_forecast slots;
  for (const auto& [ticket, each] : holders_)
    each.background ? slots.soon() : slots.busy(lengths_.expected_s(each.kind), seconds_between(each.since, now));
  return slots;
}

} // namespace parley::actors
