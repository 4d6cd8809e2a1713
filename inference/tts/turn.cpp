#include "inference/tts/turn.hpp"

#include "inference/temperature.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace parley::inference::speech {

tts_turn::tts_turn(const tts_embeddings& embeddings, const tts_llama& model, tts_form form, tts_sampling sampling)
    : embeddings_(&embeddings), model_(&model), form_(form), sampling_(sampling) {
  if (form_ == tts_form::duplex)
    sampling_.narrow = false; // there the reference builds top_p and top_k but never applies them
}

void tts_turn::reset() {
  *this = tts_turn(*embeddings_, *model_, form_, sampling_);
}

void tts_turn::begin(at::Tensor condition, tts_limits limits) {
  if (running_) throw std::logic_error("speech tokens: a group is running");
  limits_ = limits;
  condition_ = feed_ = std::move(condition);
  const auto attention = form_ == tts_form::streamed ? model_->config().attention : tts_attention::full_attention;
  if (!groups_.empty() && attention == tts_attention::sliding_recompute) {
    const auto& last = groups_.back();
    cache_.clear();
    position_ = 0;
    std::vector<at::Tensor> again{last.condition};
    if (last.tokens > 0) again.push_back(embeddings_->codes(std::span(tokens_).subspan(last.first_token, last.tokens)));
    again.push_back(condition_);
    feed_ = at::cat(again, 0);
  } else if (attention == tts_attention::reindex) {
    keep_first_and_last_group();
  }
  fed_ = feed_.size(0);
  group_begin_ = tokens_.size();
  chosen_begin_ = chosen_.size();
  step_ = 0;
  running_ = true;
  ended_by_token_ = false;
}

/// Moves the last group's keys to directly after the first group's. It follows the reference literally: row i is
/// rotated by i more than the distance, and a group that ended by its limit counts one row too many
/// (docs/model/talker.md 4.1).
void tts_turn::keep_first_and_last_group() {
  if (groups_.size() < 2) return;
  const auto first = groups_.front().rows(), last = groups_.back().rows(), have = cache_.length();
  if (have <= first + last) return;
  std::vector<at::Tensor> keys, values;
  for (std::size_t n = 0; n < model_->layers(); ++n) {
    const auto k = cache_.keys(n), v = cache_.values(n);
    const auto distance = first - (have - last);
    const auto turn = at::arange(distance, distance + last, k.options().dtype(at::kLong));
    keys.push_back(at::cat({k.narrow(1, 0, first), model_->rotate(k.narrow(1, have - last, last), turn)}, 1));
    values.push_back(at::cat({v.narrow(1, 0, first), v.narrow(1, have - last, last)}, 1));
  }
  cache_.assign(std::move(keys), std::move(values));
  position_ = first + last;
}

tts_llama::row tts_turn::next() {
  if (!running_) throw std::logic_error("speech tokens: no group is running");
  taking_ = forced_at_once();
  tts_llama::row row{&cache_, {}, {}, embeddings_, step_ == 0 ? position_ : position_ + fed_ + step_ - 1};
  if (step_ == 0)
    row.embeddings = feed_;
  else
    row.tokens.push_back(tokens_.back());
  if (taking_ > 1)
    row.tokens.insert(row.tokens.end(), forced_.begin(), forced_.begin() + static_cast<std::ptrdiff_t>(taking_ - 1));
  return row;
}

/// How many tokens to force in one step: up to the end of the group, or one if each step shortens the cache.
std::size_t tts_turn::forced_at_once() const {
  const bool shrinks = form_ == tts_form::streamed && model_->config().attention == tts_attention::sliding_window;
  const auto most = shrinks ? std::size_t{1} : static_cast<std::size_t>(limits_.most - step_);
  const auto within = forced_.begin() + static_cast<std::ptrdiff_t>(std::min(forced_.size(), most));
  const auto end = std::find(forced_.begin(), within, model_->end_token());
  return static_cast<std::size_t>((end == within ? within : end + 1) - forced_.begin());
}

std::span<const std::int64_t> tts_turn::penalised() const {
  return form_ == tts_form::duplex ? group() : tokens();
}

std::int64_t tts_turn::banned() const {
  return step_ < limits_.least ? model_->end_token() : -1;
}

void tts_turn::take(std::span<const float> logits, random_source& chance) {
  if (form_ == tts_form::streamed && model_->config().attention == tts_attention::sliding_window)
    cache_.keep_last(model_->config().token_window);
  const bool greedy = sampling_.greedy || takes_the_likeliest(sampling_.temperature);
  if (auto left = std::exchange(taking_, 0); left > 0) {
    for (; left > 0; --left) {
      if (!greedy) chance.next();
      choose(forced_.front());
      forced_.pop_front();
    }
    return;
  }
  tts_probabilities(logits, penalised(), sampling_, banned(), probabilities_);
  if (greedy) {
    choose(tts_likeliest(probabilities_));
    return;
  }
  const auto u = chance.next();
  const auto token = tts_draw(probabilities_, u);
  if (sampling_.margins) sampling_.margins->push_back(tts_margin(probabilities_, u, token));
  choose(token);
}

bool tts_turn::chooses_on_device() const {
  const bool slides = form_ == tts_form::streamed && model_->config().attention == tts_attention::sliding_window;
  const bool greedy = sampling_.greedy || takes_the_likeliest(sampling_.temperature);
  return running_ && forced_.empty() && !slides && !greedy && sampling_.margins == nullptr;
}

tts_choice tts_turn::choice(std::int64_t steps, random_source& chance) const {
  tts_choice made;
  made.rules = sampling_;
  const auto all = penalised();
  const auto recent = all.last(std::min(all.size(), static_cast<std::size_t>(std::max(0, sampling_.penalty_window))));
  made.recent.assign(recent.begin(), recent.end());
  made.banned_steps = std::max(0, limits_.least - step_);
  const auto before = chance.where();
  for (std::int64_t i = 0; i < steps; ++i) made.chances.push_back(chance.next());
  chance.go_on_from(before);
  return made;
}

void tts_turn::take(std::span<const std::int64_t> chosen, random_source& chance) {
  std::size_t used = 0;
  for (; used < chosen.size() && running_; ++used) {
    if (chosen[used] < 0) throw std::runtime_error("the logits of speech tokens are not numbers");
    chance.next();
    choose(chosen[used]);
  }
  cache_.drop_last(std::ssize(chosen) - static_cast<std::int64_t>(used));
}

void tts_turn::choose(std::int64_t token) {
  chosen_.push_back(token);
  ++step_;
  ended_by_token_ = token == model_->end_token();
  const bool full = step_ >= limits_.most;
  // Duplex and whole answers return only the tokens before the last step, all of which are in the cache.
  if (!ended_by_token_ && (!full || form_ == tts_form::streamed)) tokens_.push_back(token);
  if (ended_by_token_ || full) finish();
}

void tts_turn::stop() {
  if (running_) finish();
}

void tts_turn::finish() {
  running_ = false;
  groups_.push_back({condition_, group_begin_, tokens_.size() - group_begin_});
  position_ += fed_ + static_cast<std::int64_t>(tokens_.size() - group_begin_);
  feed_ = condition_ = at::Tensor();
}

std::vector<at::Tensor> tts_logits(const tts_llama& model, std::span<const tts_step> steps) {
  std::vector<at::Tensor> result(steps.size());
  std::vector<tts_llama::row> rows;
  for (const auto& step : steps)
    if (step.turn->running()) rows.push_back(step.turn->next());
  if (rows.empty()) return result;
  const auto logits = model.next_logits(rows);
  auto row = logits.begin();
  for (std::size_t i = 0; i < steps.size(); ++i)
    if (steps[i].turn->running()) result[i] = *row++;
  return result;
}

bool tts_chooses(const tts_llama& model, const tts_step& step) {
  return model.chooses() && step.turn->chooses_on_device() && step.chance->where() != random_source::state{};
}

std::vector<std::vector<std::int64_t>> tts_choose(const tts_llama& model, std::span<const tts_step> steps,
                                                  std::int64_t count) {
  std::vector<tts_llama::row> rows;
  std::vector<tts_choice> how;
  for (const auto& step : steps) {
    how.push_back(step.turn->choice(count, *step.chance));
    rows.push_back(step.turn->next());
  }
  return model.choose(rows, how, count);
}

void tts_take(const tts_step& step, const at::Tensor& logits) {
  if (!logits.defined()) return;
  step.turn->take({logits.const_data_ptr<float>(), static_cast<std::size_t>(logits.numel())}, *step.chance);
}

void tts_advance(const tts_llama& model, std::span<const tts_step> steps) {
  const auto logits = tts_logits(model, steps);
  for (std::size_t i = 0; i < steps.size(); ++i) tts_take(steps[i], logits[i]);
}

} // namespace parley::inference::speech
