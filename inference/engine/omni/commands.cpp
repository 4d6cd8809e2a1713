#include "inference/chat/conversation.hpp"
#include "inference/engine/omni/omni_engine.hpp"
#include "inference/engine/tasks/chat_task.hpp"
#include "inference/engine/tasks/opening_task.hpp"
#include "inference/engine/tasks/replay_task.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <random>
#include <span>
#include <string>
#include <utility>

// Handles commands: opens and closes sessions, and gives them tasks.
namespace parley::inference {

namespace {

constexpr std::size_t most_waiting = 64; ///< units or turns of one session; the gateway sends one at a time

constexpr auto no_such_token = "the replay names a token that the model does not have";

std::uint64_t random_seed() {
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32 | entropy();
}

} // namespace

void omni_engine::handle(command&& order) {
  idle_.interrupt();
  const auto id = session_of(order);
  const auto number = answer_number(order).value_or(0); // 0 = it concerns the session itself
  try {
    c10::InferenceMode guard;
    use_threads();
    std::visit([this](auto&& o) { apply(std::move(o)); }, std::move(order));
  } catch (...) {
    const words_of_exception why;
    if (sessions_.loses_device(why.text)) return;
    auto* s = sessions_.find(id);
    if (s && number == 0)
      sessions_.fail(*s, failure_kind::inference, why.text);
    else
      sessions_.refuse(id, number, failure_kind::inference, why.text); // the task is not in the queue yet
  }
  sessions_.bury();
}

bool omni_engine::may_open(session_id id) {
  const char* objection = nullptr;
  // Not the number of slots offered now: a session may hold one that was granted when there were more.
  const auto most = std::max(options_.most_sessions, options_.info.slots);
  if (sessions_.find(id))
    objection = "the session is open already";
  else if (sessions_.size() >= static_cast<std::size_t>(most))
    objection = "no slot is free";
  if (objection) sessions_.refuse(id, 0, failure_kind::inference, objection);
  return !objection;
}

std::uint64_t omni_engine::choose_seed(std::optional<std::uint64_t> wanted) const {
  return wanted ? *wanted : options_.seed ? *options_.seed : random_seed();
}

/// Whether the model has all these tokens. A replay's choices come from another process, and on a GPU one row beyond a table
/// ends the worker.
bool omni_engine::knows(std::span<const std::int64_t> sampled, std::span<const std::int64_t> spoken) const {
  const auto all_below = [](std::span<const std::int64_t> ids, std::int64_t end) {
    return std::ranges::all_of(ids, [&](auto id) { return id >= 0 && id < end; });
  };
  return all_below(sampled, model_->llm().vocabulary()) &&
         (!talker_ || all_below(spoken, talker_->models().embeddings->count()));
}

void omni_engine::apply(open_duplex&& order) {
  const auto id = order.session;
  if (!may_open(id)) return;
  if (!model_->hears()) return sessions_.refuse(id, 0, failure_kind::invalid, "this model does not hear");
  auto fresh = std::make_unique<duplex_session>(id, choose_seed(order.seed), pool_.open(), order.options, context_);
  auto& s = *fresh;
  s.arrival = ++arrivals_;
  sessions_.add(std::move(fresh));
  sessions_.enqueue(s, std::make_unique<opening_task>(s, std::move(order)));
}

void omni_engine::apply(open_chat&& order) {
  const auto id = order.session;
  if (!may_open(id)) return;
  auto fresh = std::make_unique<chat_session>(id, choose_seed(order.seed), pool_.open(), options_.draws);
  if (order.chance) fresh->go_on_from(*order.chance);
  const auto seed = fresh->seed;
  fresh->arrival = ++arrivals_;
  sessions_.add(std::move(fresh));
  out_(opened{id, 0, {}, seed});
}

void omni_engine::apply(submit_unit&& order) {
  const auto id = order.session;
  const auto number = order.unit;
  auto* s = sessions_.find<duplex_session>(id);
  if (!s) return sessions_.refuse(id, number, failure_kind::inference, "no such duplex session");
  if (s->waiting.size() >= most_waiting)
    return sessions_.refuse(id, number, failure_kind::inference, "too many units wait");
  if (order.replay && !(knows(order.replay->sampled, order.replay->spoken) && knows(order.replay->remembered, {})))
    return sessions_.refuse(id, number, failure_kind::invalid, no_such_token);
  auto pictures = context_.slice(id, order.frames, order.max_slice_nums);
  if (!pictures) return sessions_.refuse(id, number, failure_kind::inference, "too many pictures wait");
  if (order.replay)
    sessions_.enqueue(*s, std::make_unique<replay_task>(*s, std::move(order), *std::move(pictures)));
  else
    sessions_.enqueue(*s, std::make_unique<duplex_task>(*s, std::move(order), *std::move(pictures)));
}

void omni_engine::apply(submit_turn&& order) {
  const auto id = order.session;
  const auto number = order.turn;
  auto* s = sessions_.find<chat_session>(id);
  if (!s) return sessions_.refuse(id, number, failure_kind::inference, "no such chat session");
  if (s->waiting.size() >= most_waiting)
    return sessions_.refuse(id, number, failure_kind::inference, "too many turns wait");
  if (order.replay && !knows(order.replay->sampled, order.replay->spoken))
    return sessions_.refuse(id, number, failure_kind::invalid, no_such_token);
  auto pictures = context_.slice(id, chat::pictures_in(order),
                                 order.max_slice_nums.value_or(model_->config().vision.max_slice_nums));
  if (!pictures) return sessions_.refuse(id, number, failure_kind::inference, "too many pictures wait");
  sessions_.enqueue(*s, std::make_unique<chat_task>(*s, context_, std::move(order), *std::move(pictures)));
}

void omni_engine::apply(cut&& order) {
  if (auto* s = sessions_.find(order.session); s && s->running) sessions_.step(*s->running, [](task& t) { t.cut(); });
}

void omni_engine::apply(cancel_turn&& order) {
  if (auto* s = sessions_.find(order.session); s && s->running)
    sessions_.step(*s->running, [](task& t) { t.cancel(); });
}

void omni_engine::apply(close_session&& order) {
  if (const auto* s = sessions_.find(order.session); s && s->most_pages > 0) forecast_.ended(s->most_pages);
  share_.forget(order.session);
  sessions_.end(order.session);
  out_(closed{order.session});
}

} // namespace parley::inference
