#include "inference/engine/omni/omni_engine.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <ctime>
#include <stdexcept>

namespace parley::inference {

namespace {

/// What the calling thread has run so far.
engine_clock::duration time_on_core() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

} // namespace

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

bool omni_engine::idle() {
  if (!options_.slots_by_pace || !options_.time_second || sessions_.size() > 0) return false;
  if (options_.slots_by_pace->slots() >= options_.most_sessions || !idle_.due()) return false;
  c10::InferenceMode guard;
  use_threads();
  const auto before = options_.slots_by_pace->slots();
  std::optional<step_cost> cost;
  try {
    cost = idle_.add(options_.time_second(idle_.next()));
  } catch (const std::exception&) { // there may be no memory for it beside the KV cache: then it stays as it was
    options_.time_second = nullptr;
    return false;
  }
  if (cost && options_.slots_by_pace->measured(*cost) && options_.slots_measured)
    options_.slots_measured(before, options_.slots_by_pace->slots(), *cost);
  return idle_.begun();
}

bool omni_engine::run_pass() {
  c10::InferenceMode guard;
  use_threads();
  const helpers_done done{context_.pictures ? context_.pictures->finished() : 0, context_.texts.finished()};
  hand_out_voices();
  sessions_.each_task([this](task& t) {
    if (t.needs() == stage::look || t.needs() == stage::read || t.needs() == stage::same_prompt)
      sessions_.step(t, [](task& u) { u.resume(); });
  });
  auto ready = ready_tasks();
  if (ready.empty()) {
    sessions_.bury();
    wait_for_helpers(done);
    return count_busy() > 0;
  }
  const auto begin = engine_clock::now();
  auto plan = schedule_pass(ready, options_.limits, begin, &share_, windows_from_);
  auto waiting = share_pages(plan);
  auto wait = waiting.size();
  while (plan.empty() && !waiting.empty()) { // who waits for pages holds nobody up
    std::erase_if(ready, [&](const auto& r) { return std::ranges::find(waiting, r.session) != waiting.end(); });
    plan = schedule_pass(ready, options_.limits, begin, &share_, windows_from_);
    waiting = share_pages(plan);
    wait += waiting.size();
  }
  if (plan.empty()) {
    sessions_.bury();
    wait_for_helpers(done);
    return count_busy() > wait;
  }
  const auto share = share_of_units(plan);
  const auto ran = time_on_core();
  run_stages(plan);
  const auto now = engine_clock::now();
  if (model_->llm().device().is_cpu()) context_.ledger.waited += std::max(now - begin - (time_on_core() - ran), {});
  share_.pass_over(plan.owners, plan.units, begin, now);
  measure(begin, now, share);
  sessions_.bury();
  return count_busy() > 0;
}

/// Runs the stages, and measures what their parts cost.
void omni_engine::run_stages(const schedule& plan) {
  std::vector<planned_work> all, paid;
  auto each = [&](stage at, std::span<const session_id> ids) {
    for (const auto id : ids) all.push_back({id, at, 1});
  };
  auto piece_by_piece = [&](stage at, std::span<const schedule::piece> pieces) {
    for (const auto& piece : pieces) all.push_back({piece.session, at, piece.rows});
  };
  auto timed = [&](auto&& run) {
    if (all.empty()) return;
    struct doing {
      session_id who;
      const task* what;
      work_kind kind;
      std::int64_t rows;
    };
    std::vector<doing> done;
    auto rows = std::int64_t{0};
    for (const auto& work : all)
      if (auto* t = sessions_.needing(work.at, work.session)) {
        done.push_back({work.session, t, t->kind(), work.rows});
        rows += work.rows;
      }
    const auto begin = engine_clock::now();
    run();
    const auto took = engine_clock::now() - begin;
    for (const auto& [who, what, kind, its_rows] : done) {
      const auto part = took * its_rows / rows;
      context_.ledger.of(kind) += part;
      if (const auto* s = sessions_.find(who); s && s->running.get() == what) s->running->spend(part);
    }
    paid.clear();
    for (const auto& work : plan.paid)
      if (std::ranges::any_of(all, [&](const auto& a) { return a.at == work.at && a.session == work.session; }))
        paid.push_back(work);
    share_.ran(all, paid, took);
    all.clear();
  };
  each(stage::hear, plan.hear);
  timed([&] { stages_.hear(plan.hear); });
  piece_by_piece(stage::see, plan.see);
  timed([&] { stages_.see(plan.see); });
  if (plan.clips) each(stage::clips, {&*plan.clips, 1});
  timed([&] { stages_.hear_clips(*plan.clips); });
  piece_by_piece(stage::slide, plan.slide);
  timed([&] { stages_.slide(plan.slide); });
  piece_by_piece(stage::prefill, plan.prefill);
  each(stage::decode, plan.decode);
  timed([&] { stages_.run_llm(plan.prefill, plan.decode); });
  each(stage::speak, plan.speak);
  timed([&] { stages_.choose_speech(plan.speak, options_.limits.speech_steps); });
  each(stage::sound, plan.sound);
  if (all.empty()) return;
  const auto begin = engine_clock::now();
  timed([&] { stages_.make_sound(plan.sound); });
  const auto now = engine_clock::now();
  windows_from_ = now + options_.limits.window_rest * (now - begin);
}

/// Lists the stages that tasks need, except those prepared elsewhere.
std::vector<ready_session> omni_engine::ready_tasks() const {
  std::vector<ready_session> ready;
  sessions_.each_task([&](const task& t) {
    auto add = [&](stage at, std::int64_t rows, bool divisible) {
      if (at == stage::idle || is_elsewhere(at)) return;
      ready.push_back(
          {t.owner().id, at, t.deadline(), rows, divisible, !t.is_unit(), t.steps_left(), t.owner().is_moved()});
    };
    add(t.needs(), t.rows_left(), t.divisible());
    add(t.speech_needs(), 0, false);
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
void omni_engine::wait_for_helpers(const helpers_done& known) {
  constexpr auto patience = std::chrono::milliseconds(2);
  auto looking = false, reading = false;
  sessions_.each_task([&](const task& t) {
    looking = looking || t.needs() == stage::look;
    reading = reading || t.needs() == stage::read;
  });
  if (reading)
    context_.texts.wait(known.texts, patience);
  else if (looking)
    context_.pictures->wait(known.pictures, patience);
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
  for (const auto* pieces : {&plan.see, &plan.slide, &plan.prefill})
    for (const auto& piece : *pieces) count(piece.session, piece.rows);
  if (plan.clips) ++all;
  return all > 0 ? static_cast<double>(units) / static_cast<double>(all) : 0;
}

void omni_engine::measure(engine_clock::time_point begin, engine_clock::time_point now, double share) {
  if (!options_.slots_by_pace) return;
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
  const auto microseconds = [](engine_clock::duration time) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  };
  const auto& [spent, waited, late] = context_.ledger;
  now.unit_us = microseconds(spent[static_cast<std::size_t>(work_kind::unit)]);
  now.window_us = microseconds(spent[static_cast<std::size_t>(work_kind::window)]);
  now.prompt_us = microseconds(spent[static_cast<std::size_t>(work_kind::prompt)]);
  now.chat_us = microseconds(spent[static_cast<std::size_t>(work_kind::chat)]);
  now.replay_us = microseconds(spent[static_cast<std::size_t>(work_kind::replay)]);
  now.waited_us = microseconds(waited);
  now.late_itself = late[static_cast<std::size_t>(late_cause::itself)];
  now.late_units = late[static_cast<std::size_t>(late_cause::units)];
  now.late_background = late[static_cast<std::size_t>(late_cause::background)];
  now.late_core = late[static_cast<std::size_t>(late_cause::core)];
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
