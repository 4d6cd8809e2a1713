#include "inference/chat/conversation.hpp"
#include "inference/chat/template.hpp"
#include "inference/engine/omni_engine.hpp"
#include "inference/temperature.hpp"

#include <ATen/ATen.h>

namespace parley::inference {

namespace {

double milliseconds(engine_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

llm::chat_sampling sampling_of(const submit_turn& turn) {
  llm::chat_sampling o;
  o.greedy = turn.do_sample == false;
  o.temperature = turn.temperature.value_or(o.temperature);
  o.top_k = turn.top_k.value_or(o.top_k);
  o.top_p = turn.top_p.value_or(o.top_p);
  o.length_penalty = turn.length_penalty;
  return o;
}

} // namespace

void omni_engine::start_turn(session& s) {
  auto& c = *s.chat;
  auto [turn, pictures] = std::move(s.turns.front());
  s.turns.pop_front();
  c.turn = std::move(turn);
  s.began = engine_clock::now();
  s.why = purpose::turn;
  c.before = s.chance_now();
  if (const auto& replay = c.turn->replay)
    c.told = {replay->drawn.size(), replay->spoken.size(), replay->text_bytes, replay->samples};
  s.tts_ms = s.token2wav_ms = 0;
  take_pictures(s, std::move(pictures));
  s.at = stage::look;
  if (!s.pictures) begin_turn(s);
}

/// The turn's pictures are sliced: what stands for them in the prompt is known.
void omni_engine::begin_turn(session& s) {
  auto& c = *s.chat;
  const auto& turn = *c.turn;
  std::span<const vision::sliced_picture> pictures;
  if (s.pictures) pictures = s.pictures->pictures;
  auto talk = chat::read_conversation(turn, model_->config(), pictures);
  if (talk.objection.empty() && !talk.clips.empty() && !model_->hears())
    talk.objection = "audio: this model does not hear";
  if (!talk.objection.empty()) {
    fail(s, failure::invalid, talk.objection);
    return;
  }
  chat::template_options how;
  how.enable_thinking = turn.enable_thinking;
  const bool speaks = turn.tts && talker_;
  if (auto why = speaks ? voice_objection(turn.tts_voice) : std::nullopt) {
    fail(s, failure::invalid, *why);
    return;
  }
  how.use_tts_template = turn.use_tts_template || turn.tts || !talk.clips.empty();
  how.generation_prompt = !options_.how.chat_im_end_is_doubled;
  // Judged before it is written out and cut into tokens: what surely does not fit costs no more than looking at it.
  if (const auto least = chat::least_tokens(talk); least >= options_.info.context_tokens) {
    fail(s, failure::context_full,
         "the messages make at least " + std::to_string(least) + " tokens, the context holds " +
             std::to_string(options_.info.context_tokens));
    return;
  }
  auto text = chat::apply_template(talk.messages, how);
  if (options_.how.chat_im_end_is_doubled) text.add("<|im_end|>\n" + chat::generation_prompt(how));
  c.prompt = chat::encode_prompt(model_->text(), text, talk.media, true);
  if (std::ssize(c.prompt.ids) >= options_.info.context_tokens) {
    fail(s, failure::context_full,
         "the messages make " + std::to_string(c.prompt.ids.size()) + " tokens, the context holds " +
             std::to_string(options_.info.context_tokens));
    return;
  }
  c.sampling = sampling_of(turn);
  if (turn.seed) c.chance.emplace(*turn.seed, substream::text);
  c.answer.emplace(model_->text(), options_.how, turn.max_new_tokens);
  s.clips = std::move(talk.clips);
  if (speaks) ask_voice(s, turn.tts_voice);
  if (s.pictures)
    s.at = stage::see;
  else if (s.clips.empty())
    embed_turn(s, {});
  else
    s.at = stage::clips;
}

/// All that the prompt shows and plays becomes its rows.
void omni_engine::embed_turn(session& s, const at::Tensor& sound) {
  at::Tensor sight;
  if (!s.seen.empty()) sight = s.seen.front();
  begin_prefill(s, purpose::turn, chat::embed_prompt(model_->llm(), s.chat->prompt, sound, sight));
  forget_pictures(s);
}

/// The newest logits are there: one more token of the answer.
void omni_engine::answer(session& s) {
  auto& c = *s.chat;
  std::span<float> row(s.logits.mutable_data_ptr<float>(), static_cast<std::size_t>(s.logits.numel()));
  auto banned = c.speaks ? std::span<const token_id>(answer_ids_.unspeakable) : std::span<const token_id>();
  auto& chance = c.chance ? *c.chance : s.chance;
  if (const auto& replay = c.turn->replay; replay && c.drawn.size() < replay->drawn.size()) {
    s.token = replay->drawn[c.drawn.size()];
    if (!c.sampling.greedy && !takes_the_likeliest(c.sampling.temperature)) chance.next();
    return;
  }
  s.token = llm::draw_chat(row, banned, answer_ids_.terminators, c.answer->seen(), c.sampling, chance, s.scratch);
}

void omni_engine::finish_turn(session& s, finish reason) {
  auto& c = *s.chat;
  auto now = engine_clock::now();
  chat_done done;
  done.session = s.id;
  done.turn = c.turn->turn;
  done.reason = reason;
  done.text = std::move(c.text);
  done.used.input_audio = c.prompt.audio_rows();
  done.used.input_vision = c.prompt.image_rows();
  done.used.input_text = std::ssize(c.prompt.ids) - done.used.input_audio - done.used.input_vision;
  done.metrics.vision_slices = static_cast<int>(c.prompt.image.size());
  done.metrics.vision_tokens = static_cast<int>(done.used.input_vision);
  done.used.output_text = std::ssize(c.drawn);
  done.metrics.kv_cache_length = static_cast<int>(s.cache.length());
  done.metrics.tts_ms = s.tts_ms;
  done.metrics.token2wav_ms = s.token2wav_ms;
  if (c.speech)
    done.used.output_audio = done.metrics.n_tts_tokens = static_cast<int>(c.speech->tokens().tokens().size());
  if (!c.sound.empty() && reason != finish::cancelled)
    done.audio = std::make_shared<const std::vector<float>>(std::move(c.sound));
  if (s.at == stage::decode || !c.drawn.empty()) {
    done.metrics.prefill_ms = milliseconds(s.prefilled - s.began);
    done.metrics.generate_ms = milliseconds(now - s.prefilled);
    done.metrics.llm_ms = milliseconds((c.worded ? c.worded_at : now) - s.prefilled);
  }
  done.metrics.n_tokens = static_cast<int>(c.drawn.size());
  done.after = s.chance_now();
  out_(std::move(done));
  forget_turn(s);
  next_job(s);
}

/// The session holds nothing of its turn any more.
void omni_engine::forget_turn(session& s) {
  s.chat.emplace();
  s.cache.truncate(0);
  s.rows.reset();
  s.hearing.reset();
  s.clips.clear();
  forget_pictures(s);
  s.at = s.speech_at = stage::idle;
  if (voices_ && std::exchange(s.voice_awaited, false)) voices_->forget(s.id);
}

} // namespace parley::inference
