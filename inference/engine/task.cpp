#include "inference/engine/task.hpp"

#include "base/assert.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace parley::inference {

namespace {

[[noreturn]] void never_needed() {
  PARLEY_ASSERT(false, "a stage is run for tasks that need it, and no others");
  std::abort();
}

} // namespace

bool is_elsewhere(stage at) {
  return at == stage::look || at == stage::read || at == stage::same_prompt || at == stage::voice;
}

void task::need(stage next) {
  PARLEY_ASSERT(!finished_, "a task that has finished needs nothing");
  PARLEY_ASSERT(std::ranges::any_of(allowed_, [&](const auto& t) { return t.from == needs_ && t.to == next; }),
                "a task's stages follow each other as its table says");
  needs_ = next;
}

void task::need_speech(stage next) {
  PARLEY_ASSERT(!finished_, "a task that has finished needs nothing");
  PARLEY_ASSERT(next == stage::idle || next == stage::voice || next == stage::speak || next == stage::sound,
                "the half that speaks needs a voice, speech tokens or sound");
  speech_needs_ = next;
}

void task::prefill(at::Tensor rows) {
  PARLEY_ASSERT(rows.defined() && rows.size(0) > 0, "a prefill has rows");
  need(stage::prefill);
  feed_.rows = std::move(rows);
  feed_.done = 0;
}

void task::set_finished() {
  PARLEY_ASSERT(!finished_, "a task finishes once");
  finished_ = true;
  needs_ = speech_needs_ = stage::idle;
}

void task::fail(failure_kind kind, std::string message) {
  PARLEY_ASSERT(!finished_ && !failure_, "a task ends once");
  failure_.emplace(kind, std::move(message));
  needs_ = speech_needs_ = stage::idle;
}

void task::take_back() {
  PARLEY_ASSERT(false, "a task with a number knows how to take its session back");
}

void task::resume() {
  never_needed();
}

void task::on_voice(std::shared_ptr<const speech::voice>) {
  never_needed();
}

thinker::fresh_sound task::next_sound() {
  never_needed();
}

void task::on_heard(at::Tensor) {
  never_needed();
}

std::vector<const vision::patch_grid*> task::next_pieces(std::int64_t) {
  never_needed();
}

void task::on_seen(at::Tensor) {
  never_needed();
}

thinker::clip_hearing& task::clips() {
  never_needed();
}

void task::on_clips_heard(at::Tensor) {
  never_needed();
}

int task::pages_to_slide() const {
  never_needed();
}

void task::slide(std::int64_t) {
  never_needed();
}

void task::on_prefilled() {
  never_needed();
}

void task::on_token_fed() {
  never_needed();
}

token_id task::draw(std::span<float>) {
  never_needed();
}

std::optional<token_id> task::draw_listed(llm::short_row) {
  never_needed();
}

void task::on_token_drawn() {
  never_needed();
}

speech::tts_step task::speech_step() {
  never_needed();
}

void task::on_speech_token() {
  never_needed();
}

speech::token2wav::job task::next_window() {
  never_needed();
}

void task::on_sound(at::Tensor) {
  never_needed();
}

} // namespace parley::inference
