#include "inference/engine/tasks/chat_task.hpp"

#include "base/assert.hpp"
#include "inference/chat/template.hpp"
#include "inference/llm/token_scores.hpp"
#include "inference/temperature.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
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

llm::chat_sampling sampling_of(const submit_turn& turn) {
  llm::chat_sampling o;
  o.greedy = turn.do_sample == false;
  o.temperature = turn.temperature.value_or(o.temperature);
  o.top_k = turn.top_k.value_or(o.top_k);
  o.top_p = turn.top_p.value_or(o.top_p);
  o.length_penalty = turn.length_penalty;
  return o;
}

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
  if (const auto& replay = order_->replay)
    told_ = {replay->sampled.size(), replay->spoken.size(), replay->scores,
             replay->call_pieces,    replay->text_bytes,    replay->samples};
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
  undecided_ = made->undecided;
  grammar_ = std::move(made->grammar);
  clips_.set(std::move(made->clips));
  const auto& turn = *order_;
  sampling_ = sampling_of(turn);
  if (turn.seed) chance_.emplace(*turn.seed, substream::text);
  answer_.emplace(with_.model.text(), with_.options.how, turn.max_new_tokens);
  if (!turn.tools.empty()) calls_.emplace();
  ban_marks();
  if (!turn.stop.empty()) stop_.emplace(turn.stop);
  if (turn.tool_required || !turn.answer_schema.empty())
    constrain();
  else if (!undecided_)
    begin_speech();
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

/// Drawing changes the row, so what is scored is a copy.
token_id chat_task::draw(std::span<float> logits) {
  if (order_->scored) row_.assign(logits.begin(), logits.end());
  return draw_from<token_id>(logits);
}

std::optional<token_id> chat_task::draw_listed(llm::short_row logits) {
  if (order_->scored) return std::nullopt;
  return draw_from<std::optional<token_id>>(std::move(logits));
}

/// The tokens that would show a reader the marks of calls. Where a call may begin, its first one is none of them.
void chat_task::ban_marks() {
  marks_out_of_calls_.clear();
  for (const auto mark : chat::tool_marks)
    if (const auto id = with_.model.text().find(mark); id && !(calls_ && mark == chat::call_begin))
      marks_out_of_calls_.push_back(*id);
}

/// Its first token has decided that it is an answer in JSON, and no call, where it may be either.
bool chat_task::has_begun_json() const {
  const auto& tokens = answer_->tokens();
  return constraint_ && !order_->tool_required && tokens.size() == 1 &&
         !with_.model.text().bytes(tokens.front()).starts_with(chat::call_begin.front());
}

std::span<const token_id> chat_task::banned_now() const {
  if (speaks_) return banned_;
  if (calls_ && (constraint_ || calls_->in_call())) return {};
  return marks_out_of_calls_;
}

/// From here on its words obey the grammar.
void chat_task::constrain() {
  constraint_.emplace(grammar_, with_.model.text());
}

namespace {

std::optional<token_id> likeliest_of(std::span<float> logits) {
  return static_cast<token_id>(std::ranges::max_element(logits) - logits.begin());
}

std::optional<token_id> likeliest_of(const llm::short_row& row) {
  return row.ids[static_cast<std::size_t>(std::ranges::max_element(row.logits) - row.logits.begin())];
}

bool restrict_row(chat::constraint& by, std::span<float> logits, std::int64_t left) {
  by.restrict(logits, left);
  return true;
}

bool restrict_row(chat::constraint& by, llm::short_row& row, std::int64_t left) {
  return by.restrict(row, left);
}

void make_impossible(std::span<float> logits, token_id id) {
  logits[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
}

void make_impossible(llm::short_row& row, token_id id) {
  const auto found = std::ranges::find(row.ids, id);
  if (found != row.ids.end()) make_impossible(row.logits, found - row.ids.begin());
}

/// The answer to a short row that does not suffice.
template<class Token>
Token needs_whole_row() {
  return Token{};
}

} // namespace

/// From a whole row, or a short one.
template<class Token, class Row>
Token chat_task::draw_from(Row logits) {
  auto& chance = chance_ ? *chance_ : session_.chance;
  if (const auto& replay = order_->replay; replay && drawn_.size() < replay->sampled.size()) {
    if (!undecided_ && !sampling_.greedy && !takes_the_likeliest(sampling_.temperature)) chance.next();
    return replay->sampled[drawn_.size()];
  }
  if (undecided_) {
    const auto call = with_.model.text().find(chat::call_begin);
    return call && likeliest_of(logits) == call ? *call : with_.model.text().id("<|tts_bos|>");
  }
  const auto banned = banned_now();
  if (constraint_) {
    for (const auto id : banned) make_impossible(logits, id);
    const auto context = with_.options.info.context_tokens - session_.cache.length();
    if (!restrict_row(*constraint_, logits, std::min<std::int64_t>(answer_->left(), context)))
      return needs_whole_row<Token>();
  }
  const auto& ids = with_.answer_ids;
  return llm::draw_chat(std::move(logits), banned, ids.terminators, answer_->seen(), sampling_, chance,
                        session_.scratch);
}

void chat_task::on_token_drawn() {
  drawn_.push_back(feed_.token);
  if (std::exchange(undecided_, false) && feed_.token == with_.model.text().id("<|tts_bos|>")) {
    skips_hidden_ = true;
    return begin_speech();
  }
  answer_->sampled(feed_.token, with_.answer_ids.terminators);
  if (calls_ && has_begun_json()) {
    calls_.reset();
    ban_marks();
  }
  if (constraint_) follow_constraint();
  const auto full = session_.cache.length() + 1 > with_.options.info.context_tokens;
  auto over = answer_->finished() || full;
  if (full) answer_->end();
  auto text = answer_->take_text();
  if (calls_) text = read_calls(std::move(text), over);
  text = marks_.push(text);
  if (over) text += marks_.finish();
  keep_score();
  if (stop_) {
    text = stop_->push(text);
    if (stop_->found())
      answer_->complete_here();
    else if (over)
      text += stop_->finish();
    over = over || stop_->found();
  }
  if (!text.empty()) {
    text_ += text;
    tell_words(std::move(text));
  }
  if (auto calls = untold_calls(); !calls.empty()) tell_delta({}, nullptr, std::move(calls));
  if (over) reason_ = answer_->complete() ? finish_reason::turn_end : finish_reason::length;
  if (!speaks_) {
    if (over) answer_over(reason_);
    return;
  }
  if (over) need(stage::idle);
  group_words(over);
}

/// Of the newest token, if it is one of the answer's text: not of what ends it, and of no call.
void chat_task::keep_score() {
  const auto& tokens = answer_->tokens();
  if (!order_->scored || scores_.size() == tokens.size()) return;
  scores_.emplace_back();
  const bool shown = with_.options.how.chat_text_shows_special_tokens || !with_.model.text().is_special(tokens.back());
  if (!shown || (calls_ && (calls_->in_call() || !calls_->calls().empty()))) return;
  scores_.back() = llm::score(row_, tokens.back(), *order_->scored, with_.model.text());
}

/// Those of the tokens whose words are certain, as far as they were not told.
std::vector<token_score> chat_task::untold_scores() {
  std::vector<token_score> fresh;
  for (const auto end = std::min(speakable(), scores_.size()); scores_passed_ < end; ++scores_passed_) {
    auto& score = scores_[scores_passed_];
    if (!score) continue;
    if (told_.scores > 0)
      --told_.scores; // before the turn was replayed
    else
      fresh.push_back(*std::move(score));
  }
  return fresh;
}

/// What is new of the calls, if it is wanted in pieces.
std::vector<parley::conversation::call_piece> chat_task::untold_calls() {
  if (!calls_ || !order_->call_pieces) return {};
  auto fresh = calls_->take_pieces();
  const auto again = std::min(told_.calls, fresh.size()); // sent before the turn was replayed
  told_.calls -= again;
  fresh.erase(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(again));
  return fresh;
}

/// Whether the grammar is complete.
void chat_task::follow_constraint() {
  if (answer_->complete() || !constraint_->take_token(feed_.token)) return constraint_.reset();
  if (!constraint_->done()) return;
  constraint_.reset();
  if (order_->tool_required || !order_->answer_schema.empty()) answer_->complete_here();
}

/// What of the text is none of a call. From where a call begins, it obeys the grammar, unless it does not already.
std::string chat_task::read_calls(std::string text, bool over) {
  const bool before = calls_->in_call();
  text = calls_->push(text);
  if (over) text += calls_->finish();
  if (calls_->in_call() && !before && !constraint_) {
    constrain();
    if (!constraint_->take(calls_->call_so_far())) constraint_.reset();
  }
  return text;
}

// ---- its sound

/// What has begun as speech stays speech: no call can follow.
void chat_task::begin_speech() {
  banned_ = with_.answer_ids.unspeakable;
  for (const auto mark : chat::tool_marks)
    if (const auto id = with_.model.text().find(mark)) banned_.push_back(*id);
  if (order_->tts && with_.speaker) ask_voice();
}

void chat_task::ask_voice() {
  auto voice = voice_.ask(order_->tts_voice);
  speaks_ = voice || voice_.waits();
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

/// The tokens whose words will certainly be said.
std::size_t chat_task::speakable() const {
  const auto all = answer_->tokens().size();
  return stop_ ? std::min(stop_->tokens_told(), all) : all;
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
    while (speakable() > grouped_ + size) add(size, false);
  if (over) {
    // The last token of an answer that reached its limit was never fed, so it has no hidden state to be spoken from.
    const auto rest = std::min(hidden_.size(), speakable());
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
  const auto fresh = sound.subspan(std::min(sound.size(), told_.samples));
  told_.samples -= sound.size() - fresh.size();
  if (!order_->streaming)
    sound_.insert(sound_.end(), sound.begin(), sound.end());
  else if (!fresh.empty())
    tell_delta({}, std::make_shared<const std::vector<float>>(fresh.begin(), fresh.end()));
  speak_on();
}

// ---- what is reported

void chat_task::tell_words(std::string text) {
  const auto again = std::min(told_.bytes, text.size());
  told_.bytes -= again;
  if (again < text.size()) tell_delta(text.substr(again), nullptr);
}

/// Sends a delta, together with what was chosen since the last one.
void chat_task::tell_delta(std::string text, pcm audio, std::vector<parley::conversation::call_piece> calls) {
  chat_delta delta{session_.id, order_->turn, std::move(text), std::move(audio), untold(drawn_, told_.sampled)};
  if (speech_) delta.spoken = untold(speech_->tokens().chosen(), told_.spoken);
  if (!delta.audio) delta.scores = untold_scores();
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
  done.text = std::move(text_);
  if (calls_ && reason != finish_reason::cancelled) done.calls = std::move(calls_->calls());
  done.used.input_audio = prompt_.audio_rows();
  done.used.input_vision = prompt_.image_rows();
  done.used.input_text = std::ssize(prompt_.ids) - done.used.input_audio - done.used.input_vision;
  done.used.output_text = std::ssize(drawn_);
  done.metrics.vision_slices = static_cast<int>(prompt_.image.size());
  done.metrics.vision_tokens = static_cast<int>(done.used.input_vision);
  done.metrics.kv_cache_length = static_cast<int>(session_.cache.length());
  done.metrics.tts_ms = costs_.tts_ms;
  done.metrics.token2wav_ms = costs_.token2wav_ms;
  if (speech_) done.used.output_audio = done.metrics.n_tts_tokens = static_cast<int>(speech_->tokens().tokens().size());
  if (!sound_.empty() && reason != finish_reason::cancelled)
    done.audio = std::make_shared<const std::vector<float>>(std::move(sound_));
  if (needs() == stage::decode || !drawn_.empty()) {
    done.metrics.prefill_ms = milliseconds(prefilled_ - began_);
    done.metrics.generate_ms = milliseconds(now - prefilled_);
    done.metrics.llm_ms = milliseconds(worded_.value_or(now) - prefilled_);
  }
  done.metrics.n_tokens = static_cast<int>(drawn_.size());
  done.scores = untold_scores();
  done.after = session_.rng_now();
  with_.tell(std::move(done));
  session_.cache.truncate(0);
  set_finished();
}

} // namespace parley::inference
