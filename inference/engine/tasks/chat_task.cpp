#include "inference/engine/tasks/chat_task.hpp"

#include "base/assert.hpp"
#include "inference/chat/template.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace parley::inference {

namespace {

constexpr transition chat_transitions[] = {
    {stage::idle, stage::look},     {stage::idle, stage::read}, // without pictures
    {stage::look, stage::read},     {stage::read, stage::see},
    {stage::read, stage::clips},    {stage::read, stage::prefill},
    {stage::see, stage::clips},     {stage::see, stage::prefill},
    {stage::clips, stage::prefill}, {stage::prefill, stage::decode},
    {stage::decode, stage::idle}, // all words are known and are being spoken
};

/// The ids from index `told` on; `told` then covers them all.
std::vector<std::int64_t> untold(std::span<const token_id> all, std::size_t& told) {
  std::vector<std::int64_t> fresh;
  if (told < all.size()) fresh.assign(all.begin() + static_cast<std::ptrdiff_t>(told), all.end());
  told = std::max(told, all.size());
  return fresh;
}

} // namespace

chat_task::chat_task(chat_session& of, task_context& with, submit_turn&& order, std::shared_ptr<image_job> pictures)
    : task(of, chat_transitions), session_(of), with_(with),
      order_(std::make_shared<const submit_turn>(std::move(order))), images_(std::move(pictures)), voice_(with, of.id) {
}

// ---- its life

void chat_task::begin() {
  before_ = session_.rng_now();
  began_ = engine_clock::now();
  if (const auto& replay = order_->replay) {
    told_spoken_ = replay->spoken.size();
    told_samples_ = replay->samples;
  }
  if (order_->tts && with_.speaker)
    if (auto why = voice_objection(order_->tts_voice)) return fail(failure_kind::invalid, *std::move(why));
  if (images_.any())
    need(stage::look);
  else
    read();
}

void chat_task::take_back() {
  session_.go_on_from(before_);
  session_.cache.truncate(0);
}

// ---- its prompt

/// Called while its pictures are being sliced, and while its text is being read.
void chat_task::resume() {
  if (needs() == stage::read) {
    if (reading_->done) take_prompt();
    return;
  }
  if (!images_.sliced()) return;
  if (images_.has_problem())
    return fail(images_.problem_kind(), images_.problem("picture " + std::to_string(images_.troublemaker())));
  images_.count();
  read();
}

/// Has the messages turned into a prompt, once the placeholders of their pictures are known.
void chat_task::read() {
  reading_ = std::make_shared<turn_job>(with_, order_, images_.order());
  reading_->owner = session_.id;
  if (!with_.texts.take(reading_)) return fail(failure_kind::inference, "too many texts wait");
  need(stage::read);
}

void chat_task::take_prompt() {
  const auto made = std::exchange(reading_, nullptr);
  if (made->trouble) std::rethrow_exception(made->trouble);
  if (made->objection) return fail(made->objection->first, std::move(made->objection->second));
  prompt_ = std::move(made->prompt);
  clips_.set(std::move(made->clips));
  answer_.emplace(order_, chat::answer::setting{with_.model.text(), with_.answer_ids, with_.options.how},
                  chat::answer::opening{made->undecided, std::move(made->grammar)});
  if (answer_->begins_as_speech()) begin_speech();
  if (images_.any())
    need(stage::see);
  else if (!clips_.empty())
    need(stage::clips);
  else
    embed({});
}

void chat_task::on_seen(at::Tensor rows) {
  if (!images_.add(std::move(rows))) return;
  sight_ = images_.rows().flatten(0, 1);
  images_.forget();
  if (clips_.empty())
    embed({});
  else
    need(stage::clips);
}

/// All pictures and sounds of the prompt are encoded: makes its rows.
void chat_task::embed(const at::Tensor& sound) {
  clips_.forget();
  feed_.wants_logits = true;
  prefill(chat::embed_prompt(with_.model.llm(), prompt_, sound, std::exchange(sight_, {})));
}

// ---- its words

void chat_task::on_prefilled() {
  prefilled_ = engine_clock::now();
  need(stage::decode);
}

void chat_task::on_token_fed() {
  if (!std::exchange(skips_hidden_, false) && speaks_) hidden_.push_back(feed_.hidden);
}

token_id chat_task::draw(std::span<float> logits) {
  return answer_->draw(logits, drawing());
}

std::optional<token_id> chat_task::draw_listed(llm::short_row logits) {
  return answer_->draw_listed(std::move(logits), drawing());
}

void chat_task::on_token_drawn() {
  auto news = answer_->take(feed_.token, session_.cache.length() + 1 > with_.options.info.context_tokens);
  if (news.begins_speech) {
    skips_hidden_ = true;
    return begin_speech();
  }
  if (!news.text.empty()) tell_delta(std::move(news.text), nullptr);
  if (!news.calls.empty()) tell_delta({}, nullptr, std::move(news.calls));
  if (news.over) reason_ = answer_->reason();
  if (!speaks_) {
    if (news.over) answer_over(reason_);
    return;
  }
  if (news.over) need(stage::idle);
  group_words(news.over);
}

// ---- its sound

void chat_task::begin_speech() {
  if (order_->tts && with_.speaker) ask_voice();
}

void chat_task::ask_voice() {
  auto voice = voice_.ask(order_->tts_voice);
  speaks_ = voice || voice_.waits();
  if (speaks_) answer_->speak();
  if (voice) give_voice(std::move(voice));
  if (voice_.waits()) need_speech(stage::voice);
}

void chat_task::on_voice(std::shared_ptr<const speech::voice> voice) {
  voice_.arrived();
  give_voice(std::move(voice));
  speak_on();
}

void chat_task::give_voice(std::shared_ptr<const speech::voice> voice) {
  speech::tts_sampling how;
  if (with_.options.draws) how.margins = &with_.options.draws->speech(session_.id);
  const auto seed = order_->seed ? *order_->seed : session_.spoken_seeds.bits();
  const auto form = order_->streaming ? speech::tts_form::streamed : speech::tts_form::whole;
  speech_.emplace(with_.speaker->models(), std::move(voice), form, how,
                  std::make_unique<random_stream>(seed, substream::speech_tokens),
                  std::make_unique<random_stream>(seed, substream::noise));
  if (order_->replay) speech_->force(order_->replay->spoken);
}

/// Groups words as in the reference: a group is complete once the next word is known, or the answer is over.
void chat_task::group_words(bool over) {
  const auto& ids = answer_->tokens();
  auto add = [&](std::size_t count, bool last) {
    const auto words = std::span(ids).subspan(grouped_, count);
    groups_.push_back({with_.speaker->words(words, std::span(hidden_).subspan(grouped_, count)), last});
    grouped_ += count;
  };
  constexpr auto size = static_cast<std::size_t>(chat::answer_decoder::chunk_tokens);
  if (order_->streaming)
    while (answer_->certain() > grouped_ + size) add(size, false);
  if (over) {
    // The last token of an answer that reached its limit was never fed, so it has no hidden state to be spoken from.
    const auto rest = std::min(hidden_.size(), answer_->certain());
    if (rest > grouped_) add(rest - grouped_, answer_->complete() || !order_->streaming);
    worded_ = engine_clock::now();
  }
  speak_on();
}

/// What the talker does next: sound comes before further tokens, so that it is heard early.
void chat_task::speak_on() {
  if (!speech_) return; // the voice is not ready yet
  if (!speech_->window_waits() && !speech_->choosing()) {
    if (!groups_.empty()) {
      speech_->begin_group(groups_.front().condition, groups_.front().last);
      groups_.pop_front();
    } else if (worded_ && !std::exchange(flushed_, true)) {
      speech_->finish();
    }
  }
  need_speech(speech_->window_waits() ? stage::sound : speech_->choosing() ? stage::speak : stage::idle);
  if (speech_needs() == stage::idle && flushed_) answer_over(reason_);
}

void chat_task::on_speech_token() {
  speech_->absorb();
  speak_on();
}

void chat_task::on_sound(at::Tensor samples) {
  const auto limited = samples.clamp(-1, 1);
  const std::span sound(limited.const_data_ptr<float>(), static_cast<std::size_t>(limited.numel()));
  const auto fresh = sound.subspan(std::min(sound.size(), told_samples_));
  told_samples_ -= sound.size() - fresh.size();
  if (!order_->streaming)
    sound_.insert(sound_.end(), sound.begin(), sound.end());
  else if (!fresh.empty())
    tell_delta({}, std::make_shared<const std::vector<float>>(fresh.begin(), fresh.end()));
  speak_on();
}

// ---- what is reported

/// Sends a delta, together with what was chosen since the last one.
void chat_task::tell_delta(std::string text, pcm audio, std::vector<parley::conversation::call_piece> calls) {
  chat_delta delta{session_.id, order_->turn, std::move(text), std::move(audio)};
  if (answer_) delta.sampled = answer_->take_drawn();
  if (speech_) delta.spoken = untold(speech_->tokens().chosen(), told_spoken_);
  if (!delta.audio && answer_) delta.scores = answer_->take_scores();
  delta.calls = std::move(calls);
  with_.tell(std::move(delta));
}

/// Sends the end of the turn. The session keeps nothing of the turn.
void chat_task::answer_over(finish_reason reason) {
  const auto now = engine_clock::now();
  chat_done done;
  done.session = session_.id;
  done.turn = order_->turn;
  done.reason = reason;
  if (answer_) done.text = std::move(answer_->text());
  if (answer_ && reason != finish_reason::cancelled) done.calls = answer_->take_calls();
  done.used.input_audio = prompt_.audio_rows();
  done.used.input_vision = prompt_.image_rows();
  done.used.input_text = std::ssize(prompt_.ids) - done.used.input_audio - done.used.input_vision;
  const auto drawn = answer_ ? std::ssize(answer_->drawn()) : 0;
  done.used.output_text = drawn;
  done.metrics.vision_slices = static_cast<int>(prompt_.image.size());
  done.metrics.vision_tokens = static_cast<int>(done.used.input_vision);
  done.metrics.kv_cache_length = static_cast<int>(session_.cache.length());
  done.metrics.tts_ms = costs_.tts_ms;
  done.metrics.token2wav_ms = costs_.token2wav_ms;
  if (speech_) done.used.output_audio = done.metrics.n_tts_tokens = static_cast<int>(speech_->tokens().tokens().size());
  if (!sound_.empty() && reason != finish_reason::cancelled)
    done.audio = std::make_shared<const std::vector<float>>(std::move(sound_));
  if (needs() == stage::decode || drawn > 0) {
    done.metrics.prefill_ms = milliseconds(prefilled_ - began_);
    done.metrics.generate_ms = milliseconds(now - prefilled_);
    done.metrics.llm_ms = milliseconds(worded_.value_or(now) - prefilled_);
  }
  done.metrics.n_tokens = static_cast<int>(drawn);
  if (answer_) done.scores = answer_->take_scores();
  done.after = session_.rng_now();
  with_.tell(std::move(done));
  session_.cache.truncate(0);
  set_finished();
}

} // namespace parley::inference
