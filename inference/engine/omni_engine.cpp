#include "inference/engine/omni_engine.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <stdexcept>

namespace parley::inference {

omni_engine::omni_engine(std::shared_ptr<const thinker> model, std::shared_ptr<const talker> speaker, llm::kv_pool pool,
                         options how, sink out)
    : model_(std::move(model)), talker_(std::move(speaker)), pool_(std::move(pool)), options_(std::move(how)),
      out_(std::move(out)), context_(*model_, talker_.get(), pool_, options_, out_),
      sessions_(out_, options_.device_works), stages_(sessions_, context_),
      forecast_(pool_.pages(), std::clamp(llm::kv_pool::pages_of(options_.info.context_tokens), 1, pool_.pages())) {}

bool omni_engine::advance() {
  const auto busy = run_pass();
  if (const auto& why = sessions_.device_lost())
    throw std::runtime_error("the device " + options_.info.device + " is lost: " + *why);
  return busy;
}

bool omni_engine::run_pass() {
  c10::InferenceMode guard;
  use_threads();
  const auto sliced = context_.pictures ? context_.pictures->finished() : 0;
  hand_out_voices();
  sessions_.each_task([this](task& t) {
    if (t.needs() == stage::look || t.needs() == stage::same_prompt) sessions_.step(t, [](task& u) { u.resume(); });
  });
  const auto ready = ready_tasks();
  if (ready.empty()) {
    sessions_.bury();
    wait_for_helpers(sliced);
    return count_busy() > 0;
  }
  const auto begin = engine_clock::now();
  auto plan = schedule_pass(ready, options_.limits, begin, windows_from_);
  if (const auto waiting = share_pages(plan); waiting > 0 && plan.empty()) {
    sessions_.bury();
    wait_for_helpers(sliced);
    return count_busy() > waiting;
  }
  const auto share = share_of_units(plan);
  stages_.hear(plan.hear);
  stages_.see(plan.see);
  if (plan.clips) stages_.hear_clips(*plan.clips);
  stages_.run_llm(plan.prefill, plan.decode);
  for (auto step = 0; step < options_.limits.speech_steps; ++step)
    if (!stages_.choose_speech(plan.speak)) break;
  if (!plan.sound.empty()) {
    const auto sounding = engine_clock::now();
    stages_.make_sound(plan.sound);
    const auto now = engine_clock::now();
    windows_from_ = now + options_.limits.window_rest * (now - sounding);
  }
  measure(begin, share);
  sessions_.bury();
  return count_busy() > 0;
}

/// Lists the stages that tasks need, except those prepared elsewhere.
std::vector<ready_session> omni_engine::ready_tasks() const {
  std::vector<ready_session> ready;
  sessions_.each_task([&](const task& t) {
    const auto id = t.owner().id;
    if (t.needs() != stage::idle && !is_elsewhere(t.needs()))
      ready.push_back({id, t.needs(), t.deadline(), t.rows_left(), t.divisible()});
    if (t.speech_needs() != stage::idle && !is_elsewhere(t.speech_needs()))
      ready.push_back({id, t.speech_needs(), t.deadline()});
  });
  return ready;
}

void omni_engine::hand_out_voices() {
  if (!context_.voices) return;
  for (auto& [who, voice, problem] : context_.voices->take()) {
    auto* asker = sessions_.needing(stage::voice, who);
    if (!asker) continue;
    sessions_.step(*asker, [&](task& t) {
      if (!voice) throw std::runtime_error("the reference voice: " + problem);
      t.on_voice(std::move(voice));
    });
  }
}

/// All tasks need something that is prepared elsewhere: waits for it, but only briefly, because a command may arrive.
void omni_engine::wait_for_helpers(std::uint64_t pictures_known) {
  constexpr auto patience = std::chrono::milliseconds(2);
  auto looking = false;
  sessions_.each_task([&](const task& t) { looking = looking || t.needs() == stage::look; });
  if (looking)
    context_.pictures->wait(pictures_known, patience);
  else if (context_.voices && context_.voices->awaited())
    context_.voices->wait(patience);
}

std::size_t omni_engine::count_busy() const {
  std::size_t busy = 0;
  sessions_.each_task([&](const task&) { ++busy; });
  return busy;
}

/// The share of a pass spent on units, which can't wait, not on prompts, chats and replays; by rows and steps.
double omni_engine::share_of_units(const schedule& plan) {
  auto units = std::int64_t{0}, all = std::int64_t{0};
  auto count = [&](session_id id, std::int64_t work) {
    all += work;
    const auto* s = sessions_.find(id); // null: it failed while pages were shared
    if (s && s->running && s->running->is_unit()) units += work;
  };
  for (const auto* steps : {&plan.hear, &plan.decode, &plan.speak, &plan.sound})
    for (auto id : *steps) count(id, 1);
  for (const auto* pieces : {&plan.see, &plan.prefill})
    for (const auto& piece : *pieces) count(piece.session, piece.rows);
  if (plan.clips) ++all;
  return all > 0 ? static_cast<double>(units) / static_cast<double>(all) : 0;
}

void omni_engine::measure(engine_clock::time_point begin, double share) {
  if (!options_.slots_by_pace) return;
  const auto now = engine_clock::now();
  context_.meter.pass(begin, now, share);
  if (const auto sample = context_.meter.take(now, static_cast<int>(sessions_.size())))
    options_.slots_by_pace->add(*sample);
}

engine_capacity omni_engine::capacity() const {
  engine_capacity now;
  now.kv_pages = pool_.pages();
  now.kv_pages_free = free_pages();
  now.voice_hits = context_.voices ? context_.voices->hits() : 0;
  now.voice_misses = context_.voices ? context_.voices->misses() : 0;
  now.prompt_hits = context_.prompts.hits();
  now.prompt_misses = context_.prompts.misses();
  const auto slots = options_.slots_by_pace ? options_.slots_by_pace->slots() : options_.info.slots;
  now.slots = std::max(std::min(slots, sessions_by_pages()), static_cast<int>(sessions_.size()));
  return now;
}

int omni_engine::sessions_by_pages() const {
  std::vector<int> held;
  held.reserve(sessions_.size());
  sessions_.each_session([&](const session& s) { held.push_back(s.most_pages); });
  return forecast_.sessions(held);
}

/// torch stores the number of threads per calling thread.
void omni_engine::use_threads() {
  thread_local auto used = 0;
  if (options_.threads > 0 && used != options_.threads) at::set_num_threads(used = options_.threads);
}

} // namespace parley::inference
