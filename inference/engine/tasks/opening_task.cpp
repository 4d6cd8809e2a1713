#include "inference/engine/tasks/opening_task.hpp"

#include "base/assert.hpp"
#include "inference/chat/rendered_text.hpp"

#include <ATen/ATen.h>

#include <utility>

namespace parley::inference {

namespace {

constexpr std::size_t short_text = 4096; ///< bytes; cut into tokens at once, within a millisecond or two

constexpr auto suffix_text = "<|audio_end|><|im_end|>";

constexpr transition opening_transitions[] = {
    {stage::idle, stage::read},     {stage::read, stage::idle},    {stage::idle, stage::same_prompt},
    {stage::idle, stage::clips},    {stage::idle, stage::prefill}, {stage::same_prompt, stage::idle}, // checks again
    {stage::clips, stage::prefill}, {stage::prefill, stage::idle}, // the voice may still be missing
};

} // namespace

opening_task::opening_task(duplex_session& of, open_duplex&& order)
    : task(of, opening_transitions), session_(of), order_(std::move(order)), speaker_(of.with, of.id) {}

void opening_task::begin() {
  began_ = engine_clock::now();
  chat::rendered_text prefix;
  prefix.add("<|im_start|>system\n");
  prefix.quote(order_.system_prompt);
  prefix.add("\n<|audio_start|>");
  reading_ = std::make_shared<text_job>(session_.with.model.text(), std::move(prefix),
                                        session_.with.options.info.context_tokens);
  reading_->owner = session_.id;
  if (order_.voice && !order_.voice->empty()) prompt_.voice = prompt_voice(std::move(order_.voice));
  if (session_.with.speaker && order_.options.generate_audio) {
    if (auto why = voice_objection(order_.tts_voice)) return fail(failure_kind::invalid, *std::move(why));
    auto voice = speaker_.ask(order_.tts_voice);
    if (voice) session_.give_voice(std::move(voice));
    if (speaker_.waits()) need_speech(stage::voice);
  }
  if (reading_->text.text.size() <= short_text) {
    reading_->work({});
    return take_text();
  }
  if (!session_.with.texts.take(reading_)) return fail(failure_kind::inference, "too many texts wait");
  need(stage::read);
}

/// Called while its text is being read, and while another session makes its prompt.
void opening_task::resume() {
  if (needs() == stage::same_prompt) {
    need(stage::idle);
    return share_or_make();
  }
  if (!reading_->done) return;
  need(stage::idle);
  take_text();
}

void opening_task::take_text() {
  const auto read = std::exchange(reading_, nullptr);
  if (read->trouble) std::rethrow_exception(read->trouble);
  prompt_.prefix = std::move(read->ids);
  if (!fits(0)) return; // as early as possible: nobody's voice need be heard for it
  share_or_make();
}

/// Forks a cached prompt, waits for one that another session is making, or else makes it.
void opening_task::share_or_make() {
  auto& prompts = session_.with.prompts;
  if (const auto* kept = prompts.find(prompt_)) {
    if (!fits(kept->voice_rows)) return;
    session_.cache = kept->rows.fork();
    know_parts(kept->voice_rows);
    prompt_there();
    return;
  }
  if (auto right = prompts.make(prompt_))
    making_.emplace(*std::move(right));
  else
    return need(stage::same_prompt);
  auto voice = prompt_.voice ? prompts.heard(prompt_.voice) : at::Tensor();
  if (prompt_.voice && !voice.defined())
    need(stage::clips);
  else
    build(std::move(voice));
}

void opening_task::on_clips_heard(at::Tensor rows) {
  voice_.forget();
  session_.with.prompts.put_heard(prompt_.voice, rows);
  build(std::move(rows));
}

/// Computes the parts of the prompt, once the rows of the voice are known.
void opening_task::know_parts(std::int64_t voice_rows) {
  const auto prefix = std::ssize(prompt_.prefix);
  auto suffix = session_.with.model.text().encode(suffix_text);
  used_.input_text = prefix + std::ssize(suffix);
  used_.input_audio = voice_rows;
  // What the dropped units said takes at most half of what the prompt and a unit leave.
  const auto prompt = prefix + voice_rows + std::ssize(suffix);
  const auto left = session_.with.options.info.context_tokens - session_.most_rows(0) - prompt;
  session_.window.set_prompt(prefix + voice_rows, std::move(suffix), prompt + left / 2);
}

/// Builds prefix, voice, suffix (docs/model/thinker.md 5.1). `voice`: its rows; undefined if there is none.
void opening_task::build(at::Tensor voice) {
  const auto& model = session_.with.model;
  const auto& llm = model.llm();
  if (!voice.defined())
    voice = at::empty({0, llm.config().hidden_size}, at::TensorOptions(llm.dtype()).device(llm.device()));
  if (!fits(voice.size(0))) return;
  know_parts(voice.size(0));
  auto rows = at::cat({llm.embed(prompt_.prefix), voice, llm.embed(model.text().encode(suffix_text))});
  prefill(std::move(rows));
}

/// Whether the prompt fits into the context; if not, the session has failed. Where a window slides, no unit may find the
/// context full afterwards.
bool opening_task::fits(std::int64_t voice_rows) {
  const auto slides = session_.window.options().mode != window_mode::off;
  const auto rows = std::ssize(prompt_.prefix) + voice_rows +
                    std::ssize(session_.with.model.text().encode(suffix_text)) + (slides ? session_.most_rows(0) : 0);
  if (rows <= session_.with.options.info.context_tokens) return true;
  fail(failure_kind::context_full, "the prompt does not fit into the context");
  return false;
}

void opening_task::on_prefilled() {
  need(stage::idle);
  making_.reset();
  session_.with.prompts.put(std::move(prompt_), session_.cache, used_.input_audio);
  prompt_there();
}

void opening_task::prompt_there() {
  prompt_ = {};
  if (!speaker_.waits()) tell_opened();
}

void opening_task::on_voice(std::shared_ptr<const speech::voice> voice) {
  speaker_.arrived();
  need_speech(stage::idle);
  session_.give_voice(std::move(voice));
  if (needs() == stage::idle) tell_opened();
}

/// Reports `opened`: the prompt is in the cache and the voice is ready.
void opening_task::tell_opened() {
  session_.with.tell(opened{session_.id, static_cast<int>(session_.cache.length()), used_, session_.seed});
  set_finished();
}

} // namespace parley::inference
