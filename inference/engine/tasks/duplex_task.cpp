#include "inference/engine/tasks/duplex_task.hpp"

#include "base/assert.hpp"
#include "inference/duplex/frame_rows.hpp"
#include "inference/engine/tasks/window_task.hpp"
#include "inference/logger.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace parley::inference {

namespace {

constexpr int unit_samples = 16000;
constexpr std::int64_t undivided_rows = 256; ///< of frames

constexpr transition duplex_transitions[] = {
    {stage::idle, stage::hear},       {stage::hear, stage::look},
    {stage::hear, stage::slide}, // without pictures
    {stage::hear, stage::prefill},    {stage::look, stage::slide},
    {stage::look, stage::see},        {stage::slide, stage::see},
    {stage::slide, stage::prefill},   {stage::prefill, stage::see}, // what a slide inserts, before the pictures
    {stage::prefill, stage::prefill},                               // the same, messages, the unit
    {stage::see, stage::prefill},     {stage::prefill, stage::decode},
    {stage::prefill, stage::idle}, // its words were already known
    {stage::decode, stage::idle},  // all words are chosen
    {stage::idle, stage::decode},  // cut while being spoken: the turn is closed inside the model
};

} // namespace

duplex_task::duplex_task(duplex_session& of, submit_unit&& order, std::shared_ptr<image_job> pictures)
    : task(of, duplex_transitions), session_(of), unit_(std::move(order)), images_(std::move(pictures)) {}

// ---- its life

void duplex_task::begin() {
  auto& s = session_;
  messages_ = duplex::encode_messages(s.with.model.text(), unit_.context);
  if (auto why = objection(static_cast<int>(unit_.frames.size()))) return fail(why->kind, std::move(why->message));
  before_.emplace(snapshot{
      s.cache.length(), s.encoder.length, s.stream, s.intake, s.decoder, s.history.size(), s.tail, s.rng_now(), {}});
  began_ = engine_clock::now();
  due_ = is_unit() ? s.next_due(arrived()) : arrived() + std::chrono::seconds(1);
  if (is_unit()) s.due = due_;
  ledger_ = s.with.ledger.now();
  if (const auto& draws = s.with.options.draws) draws->unit_begun(s.id);
  force_listen_ = unit_.force_listen;
  need(stage::hear);
}

/// Why the unit can't be accepted, given its number of picture pieces.
std::optional<task_failure> duplex_task::objection(int pieces) const {
  const auto& model = session_.with.model;
  if (!unit_.frames.empty() && !model.sees())
    return task_failure{failure_kind::invalid, "video_frames: this model does not see"};
  if (!unit_.samples || unit_.samples->size() != unit_samples)
    return task_failure{failure_kind::invalid, "a unit has 16000 samples"};
  const auto length = session_.cache.length();
  if (session_.window.options().mode != window_mode::off) {
    if (length <= room(pieces)) return std::nullopt;
    auto without_units = session_.window;
    const auto slid = without_units.make_room(length, room(pieces));
    if (slid && slid->length() <= room(pieces)) return std::nullopt;
    return task_failure{failure_kind::invalid, "the unit does not fit into the context, whatever is dropped"};
  }
  if (length + session_.most_rows(pieces) > session_.with.options.info.context_tokens)
    return task_failure{failure_kind::context_full, "the context is full"};
  if (length > room(pieces))
    return task_failure{failure_kind::invalid, "context: the messages make " + std::to_string(messages_.ids.size()) +
                                                   " tokens, for which there is no room"};
  return std::nullopt;
}

/// How many rows the cache may have before the unit.
std::int64_t duplex_task::room(int pieces) const {
  return session_.with.options.info.context_tokens - session_.most_rows(pieces) - std::ssize(messages_.ids);
}

std::int64_t duplex_task::rows_left() const {
  if (needs() == stage::see) return images_.left();
  return needs() == stage::slide ? slider_.layers_left() : task::rows_left();
}

/// By its stage. A unit may speak, until it is known that it does not.
int duplex_task::steps_left() const {
  constexpr auto spoken = static_cast<int>(speech::window_step) + 1; // speech tokens, and a window of them
  const auto words = std::max(session_.decoder.max_new_tokens() - static_cast<int>(drawn_.size()), 1);
  switch (speech_needs()) {
  case stage::speak: return spoken;
  case stage::sound: return 1;
  default: break;
  }
  return words + (session_.speech ? spoken : 0) + (needs() == stage::decode ? 0 : 3);
}

std::optional<std::uint64_t> duplex_task::number() const {
  return answered_ ? std::nullopt : std::optional(unit_.unit);
}

void duplex_task::take_back() {
  PARLEY_ASSERT(!answered_, "a unit that was answered is not taken back");
  if (!before_) return;
  if (slider_.under_way()) throw std::runtime_error("a window that slides can't be taken back");
  auto& s = session_;
  auto& before = *before_;
  if (before.speech) s.speech->restore(std::move(*before.speech));
  s.go_on_from(before.chance);
  s.cache.truncate(before.cache_length);
  s.encoder.length = before.encoder_length;
  s.stream = std::move(before.stream);
  s.intake = std::move(before.intake);
  s.decoder = std::move(before.decoder);
  s.history.resize(before.history);
  s.tail = std::move(before.tail);
}

void duplex_task::cut() {
  if (speech_needs() != stage::idle) {
    cut_speech();
  } else if (needs() == stage::decode) {
    if (cut_ == cut_point::none) cut_ = cut_point::deciding;
    session_.decoder.cut();
    settle();
  } else {
    force_listen_ = true;
  }
}

// ---- its input

thinker::fresh_sound duplex_task::next_sound() {
  PARLEY_ASSERT(before_, "a unit is heard once it has begun");
  auto& s = session_;
  s.stream = before_->stream;
  s.intake = before_->intake;
  s.encoder.length = before_->encoder_length;
  s.intake.append(*unit_.samples, s.stream);
  return {&s.stream, &s.encoder, s.intake.chunk(s.stream), s.intake.drop_front()};
}

void duplex_task::on_heard(at::Tensor rows) {
  session_.intake.consume(session_.stream.config);
  sound_rows_ = rows.size(0);
  sound_ = std::move(rows);
  if (images_.any())
    need(stage::look);
  else
    make_room();
}

/// Called while its pictures are being sliced.
void duplex_task::resume() {
  if (!images_.sliced()) return;
  if (images_.has_problem())
    return fail(images_.problem_kind(),
                images_.problem("video_frames[" + std::to_string(images_.troublemaker()) + "]"));
  images_.count();
  if (auto why = objection(images_.pieces())) return fail(why->kind, std::move(why->message));
  make_room();
}

/// What the unit takes of the context is known: the window makes room for it, if it has to.
void duplex_task::make_room() {
  auto& s = session_;
  std::optional<duplex::window_slide> due;
  if (s.window.options().mode != window_mode::off) due = s.window.make_room(s.cache.length(), room(images_.pieces()));
  if (!due) return look_on();
  slider_.begin(s, *std::move(due));
  need(stage::slide);
}

void duplex_task::slide(std::int64_t layers) {
  if (!slider_.advance(layers)) return;
  if (!slider_.insert().empty()) return prefill(session_.with.model.llm().embed(slider_.insert()));
  slid();
}

void duplex_task::slid() {
  slider_.end(session_);
  before_->cache_length = session_.cache.length();
  look_on();
}

void duplex_task::look_on() {
  if (images_.left() > 0)
    need(stage::see);
  else
    read_messages();
}

void duplex_task::on_seen(at::Tensor rows) {
  if (!images_.add(std::move(rows))) return;
  frames_ = duplex::frame_rows(session_.with.model, images_.pictures(), images_.rows());
  images_.forget();
  read_messages();
}

/// Prefills the end of the last unit and the messages, apart from the unit: they may be long.
void duplex_task::read_messages() {
  auto& s = session_;
  if (messages_.ids.empty()) return gather();
  const auto begin = s.cache.length() + std::ssize(s.tail);
  s.tail.insert(s.tail.end(), messages_.ids.begin(), messages_.ids.end());
  s.window.begin_unit(begin, messages_.parts);
  reads_ = true;
  prefill(s.with.model.llm().embed(std::exchange(s.tail, {})));
}

/// Joins the input: the end of the last unit (unless messages followed it), `<unit>`, any frames, the sound. If the frames
/// make many rows, they are prefilled before the sound, in parts, as messages are.
void duplex_task::gather() {
  auto& s = session_;
  std::vector<at::Tensor> rows;
  if (!input_begun_) {
    input_begun_ = true;
    if (messages_.ids.empty()) s.window.begin_unit(s.cache.length() + std::ssize(s.tail));
    s.tail.push_back(s.with.control.unit_begin);
    rows.push_back(s.with.model.llm().embed(std::exchange(s.tail, {})));
  }
  if (frames_.defined()) rows.push_back(std::exchange(frames_, {}));
  if (!rows.empty() && rows.back().size(0) > undivided_rows) {
    reads_ = true;
    return prefill(at::cat(rows));
  }
  rows.push_back(std::exchange(sound_, {}));
  feed_.wants_logits = !append_known(rows);
  prefill(at::cat(rows));
}

bool duplex_task::append_known(std::vector<at::Tensor>&) {
  return false;
}

// ---- its words

void duplex_task::on_prefilled() {
  if (slider_.under_way()) return slid();
  if (std::exchange(reads_, false)) return gather();
  input_prefilled();
}

void duplex_task::input_prefilled() {
  prefilled_ = engine_clock::now();
  need(stage::decode);
  session_.decoder.begin(force_listen_);
  settle();
}

void duplex_task::on_token_fed() {
  if (session_.decoder.fed() && session_.speech) reply_.push_back(feed_.hidden);
  settle();
}

bool duplex_task::wants_token() const {
  return needs() == stage::decode && session_.decoder.next() == duplex::wants::draw;
}

token_id duplex_task::draw(std::span<float> logits) {
  auto& s = session_;
  return llm::draw_duplex(logits, s.with.duplex_ids, s.sampling, s.with.options.how, s.history, s.chance, s.scratch);
}

std::optional<token_id> duplex_task::draw_listed(llm::short_row logits) {
  auto& s = session_;
  return llm::draw_duplex(std::move(logits), s.with.duplex_ids, s.sampling, s.with.options.how, s.history, s.chance,
                          s.scratch);
}

void duplex_task::on_token_drawn() {
  drawn_.push_back(feed_.token);
  session_.decoder.sampled(feed_.token);
  settle();
}

/// Does what the decoder asks for next.
void duplex_task::settle() {
  switch (session_.decoder.next()) {
  case duplex::wants::draw: break;
  case duplex::wants::feed: feed_.token = session_.decoder.token(); break;
  case duplex::wants::nothing: words_chosen(); break;
  }
}

/// All words of the unit are chosen, so their usage is known.
void duplex_task::words_chosen() {
  const auto& s = session_;
  const auto& outcome = s.decoder.outcome();
  const auto now = engine_clock::now();
  auto& out = answer_ = {};
  out.session = s.id;
  out.unit = unit_.unit;
  out.kind = outcome.is_listen ? output_kind::listen : output_kind::text;
  out.text = outcome.text;
  out.end_of_turn = outcome.end_of_turn;
  // <unit>, </unit>, forced tokens, the marks of the pieces, the messages
  out.used.input_text = 2 + std::ssize(outcome.appended) - outcome.sampled + s.owed_text +
                        2 * std::int64_t{images_.pieces()} + std::ssize(messages_.ids);
  out.used.input_audio = sound_rows_;
  out.used.input_vision = std::int64_t{images_.pieces()} * s.with.model.config().vision.query_num;
  out.used.output_text = outcome.sampled;
  out.metrics.vision_slices = images_.pieces();
  out.metrics.vision_tokens = static_cast<int>(out.used.input_vision);
  out.metrics.kv_cache_length = static_cast<int>(s.cache.length());
  out.metrics.prefill_ms = milliseconds(prefilled_ - began_);
  out.metrics.generate_ms = out.metrics.llm_ms = milliseconds(now - prefilled_);
  out.metrics.n_tokens = static_cast<int>(outcome.ids.size());
  out.metrics.window_events = s.window.events();
  if (needs() != stage::idle) need(stage::idle);
  if (s.speech && !outcome.is_listen && !unit_.mute)
    begin_speech();
  else
    complete();
}

// ---- its sound

void duplex_task::begin_speech() {
  auto& speech = *session_.speech;
  const auto& outcome = session_.decoder.outcome();
  auto condition = session_.with.speaker->unit(outcome.ids, reply_);
  before_->speech = speech.remember();
  speech.begin_unit(std::move(condition), outcome.end_of_turn);
  need_speech(stage::speak);
  tell_text();
}

/// Sends the text as soon as the step's usage is certain and it is known whether sound will follow: in the middle of a
/// turn, at once.
void duplex_task::tell_text() {
  const auto tokens = session_.speech->unit_tokens();
  if (told_ || !tokens) return;
  answer_.used.output_audio = static_cast<std::int64_t>(*tokens);
  if (answer_.text.empty() || !session_.speech->will_sound()) return;
  auto text = answer_;
  text.last = text.end_of_turn = false;
  text.choices = choices_so_far();
  told_ = text.used.input_text + text.used.output_text;
  answer_.text.clear();
  session_.with.tell(std::move(text));
}

void duplex_task::on_speech_token() {
  if (session_.speech->choosing()) return;
  tell_text();
  if (session_.speech->next_window())
    need_speech(stage::sound);
  else
    spoken();
}

void duplex_task::on_sound(at::Tensor samples) {
  session_.speech->take_sound(std::move(samples));
  if (!session_.speech->next_window()) spoken();
}

void duplex_task::spoken() {
  auto& speech = *session_.speech;
  auto& out = answer_;
  out.metrics.n_tts_tokens = static_cast<int>(*speech.unit_tokens());
  out.used.output_audio = out.metrics.n_tts_tokens;
  const auto chosen = speech.tokens().group_chosen();
  spoken_.assign(chosen.begin(), chosen.end());
  out.metrics.tts_ms = costs_.tts_ms;
  out.metrics.token2wav_ms = costs_.token2wav_ms;
  out.metrics.generate_ms = milliseconds(engine_clock::now() - prefilled_);
  auto sound = speech.end_unit();
  if (!sound.empty() || told_) {
    out.kind = output_kind::audio;
    out.audio = std::make_shared<const std::vector<float>>(std::move(sound));
  }
  complete();
}

/// Stops a unit that is being spoken: unsent output is dropped, and the turn is closed inside the model.
void duplex_task::cut_speech() {
  need_speech(stage::idle);
  need(stage::decode);
  cut_ = cut_point::speaking;
  session_.decoder.recall();
  settle();
}

// ---- its end

/// The choices of the unit so far.
std::shared_ptr<unit_choices> duplex_task::choices_so_far() const {
  const auto& s = session_;
  auto made = std::make_shared<unit_choices>();
  made->forced = force_listen_;
  made->cut = cut_;
  made->sampled = drawn_;
  made->remembered.assign(s.history.begin() + static_cast<std::ptrdiff_t>(before_->history), s.history.end());
  made->spoken = spoken_;
  if (before_->speech && spoken_.empty()) {
    const auto chosen = s.speech->tokens().group_chosen();
    made->spoken.assign(chosen.begin(), chosen.end());
  }
  made->after = s.rng_now();
  return made;
}

void duplex_task::complete() {
  auto& s = session_;
  const auto choices = choices_so_far();
  if (const auto& draws = s.with.options.draws) draws->unit_done(s.id, s.seed, unit_.unit, choices->spoken);
  const auto late = engine_clock::now() > due_;
  s.with.meter.unit(late);
  if (late) s.with.ledger.count_late(ledger_, spent_);
  conclude_unit();
  choices->finished = true;
  choices->owed_text = s.owed_text;
  choices->voice_open = s.speech && s.speech->turn_is_open();
  answer_.choices = choices;
  s.with.tell(std::move(answer_));
  end_unit();
}

/// From here on the unit can no longer be taken back.
void duplex_task::conclude_unit() {
  auto& s = session_;
  const auto& outcome = s.decoder.outcome();
  if (s.speech && outcome.is_listen && (force_listen_ || outcome.cut)) s.speech->cut();
  const auto& used = answer_.used;
  answer_.first = !told_;
  s.owed_text = told_ ? used.input_text + used.output_text - *told_ : 0;
  answered_ = true;
  if (outcome.terminator) s.tail.push_back(*outcome.terminator);
  s.tail.push_back(s.with.control.unit_end);
}

/// Without a window, the end of the unit is fed together with the next unit.
void duplex_task::end_unit() {
  if (session_.window.options().mode != window_mode::off)
    session_.waiting.push_front(std::make_unique<window_task>(session_, began_));
  set_finished();
}

} // namespace parley::inference
