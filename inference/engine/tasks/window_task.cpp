#include "inference/engine/tasks/window_task.hpp"

#include "base/assert.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace parley::inference {

namespace {

constexpr transition window_transitions[] = {
    {stage::idle, stage::prefill}, // feeds the unit's end, or what a slide inserts
    {stage::prefill, stage::idle},
};

} // namespace

window_task::window_task(duplex_session& of, engine_clock::time_point unit_began)
    : task(of, window_transitions), session_(of) {
  began_ = unit_began;
}

void window_task::begin() {
  prefill(session_.with.model.llm().embed(std::exchange(session_.tail, {})));
}

/// A slide follows the unit's end at once, if one is due.
std::optional<std::int64_t> window_task::first_rewritten() const {
  return session_.window.first_changed();
}

void window_task::on_prefilled() {
  need(stage::idle);
  if (std::exchange(closed_, true)) {
    session_.cache.append(moved_, session_.with.model.llm().positions());
    moved_ = {};
  } else {
    session_.window.end_unit(session_.cache.length(), session_.decoder.outcome());
    steps_ = session_.window.slide(session_.cache.length());
  }
  slide();
}

/// Sets aside the rows behind the dropped ones, and appends them again after what is inserted.
void window_task::slide() {
  while (!steps_.empty()) {
    const auto step = std::move(steps_.front());
    steps_.erase(steps_.begin());
    moved_ = session_.cache.copy_from(step.keep + step.drop);
    session_.cache.rewind(step.keep, std::ssize(step.insert) + moved_.rows());
    if (!step.insert.empty()) return prefill(session_.with.model.llm().embed(step.insert));
    session_.cache.append(moved_, session_.with.model.llm().positions());
    moved_ = {};
  }
  set_finished();
}

} // namespace parley::inference
