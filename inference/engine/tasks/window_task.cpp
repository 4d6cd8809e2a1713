#include "inference/engine/tasks/window_task.hpp"

#include "base/assert.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace parley::inference {

namespace {

constexpr transition window_transitions[] = {
    {stage::idle, stage::prefill}, // the unit's end
    {stage::prefill, stage::idle}, {stage::idle, stage::slide},
    {stage::slide, stage::idle},   {stage::slide, stage::prefill}, // what a slide inserts
};

} // namespace

window_task::window_task(duplex_session& of, engine_clock::time_point unit_began)
    : task(of, window_transitions), session_(of) {
  began_ = unit_began;
}

void window_task::begin() {
  prefill(session_.with.model.llm().embed(std::exchange(session_.tail, {})));
}

void window_task::on_prefilled() {
  need(stage::idle);
  if (slider_.under_way()) {
    slider_.end(session_);
    return set_finished();
  }
  session_.window.end_unit(session_.cache.length(), session_.decoder.outcome());
  auto due = session_.window.slide(session_.cache.length());
  if (!due) return set_finished();
  slider_.begin(session_, *std::move(due));
  need(stage::slide);
}

void window_task::slide(std::int64_t layers) {
  if (!slider_.advance(layers)) return;
  if (!slider_.insert().empty()) return prefill(session_.with.model.llm().embed(slider_.insert()));
  need(stage::idle);
  slider_.end(session_);
  set_finished();
}

} // namespace parley::inference
