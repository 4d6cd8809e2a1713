#include "inference/chat/template.hpp"
#include "inference/engine/omni_engine.hpp"

#include <ATen/ATen.h>

namespace parley::inference {

namespace {

double milliseconds(engine_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

/// What a turn's messages come to.
struct conversation {
  std::vector<chat::template_message> messages;
  std::vector<std::string> placeholders; ///< of each sound
  std::vector<std::vector<float>> clips; ///< the sounds of each message, joined
  std::string objection;
};

void add_item(conversation& c, chat::rendered_text& content, std::vector<float>& sound, const content_item& item,
              int pool_step) {
  if (const auto* text = std::get_if<text_item>(&item)) {
    content.quote(text->text);
  } else if (const auto* clip = std::get_if<audio_item>(&item); clip && clip->samples) {
    content.attach(chat::medium::audio, c.placeholders.size());
    c.placeholders.push_back(chat::audio_placeholder(clip->samples->size(), pool_step, false));
    sound.insert(sound.end(), clip->samples->begin(), clip->samples->end());
  } else if (clip) {
    c.objection = "audio: empty";
  } else {
    c.objection = "images: this build does not see";
  }
}

conversation read(const submit_turn& turn, int pool_step) {
  conversation c;
  for (const auto& m : turn.messages) {
    chat::rendered_text content;
    std::vector<float> sound;
    for (auto i = std::size_t{0}; i < m.content.size(); ++i) {
      if (i > 0 && !turn.omni_mode) content.add("\n");
      add_item(c, content, sound, m.content[i], pool_step);
    }
    c.messages.push_back({m.from, std::move(content)});
    if (!sound.empty()) c.clips.push_back(std::move(sound));
  }
  if (c.messages.empty()) c.objection = "messages: empty";
  return c;
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
  auto turn = std::move(c.waiting.front());
  c.waiting.pop_front();
  auto talk = read(turn, model_->config().audio.pool_step);
  if (talk.objection.empty() && !talk.clips.empty() && !model_->hears())
    talk.objection = "audio: this model does not hear";
  if (!talk.objection.empty()) {
    refuse(s.id, turn.turn, failure::invalid, talk.objection);
    return;
  }
  chat::template_options how;
  how.enable_thinking = turn.enable_thinking;
  const bool speaks = turn.tts && talker_;
  if (auto why = speaks ? voice_objection(turn.tts_voice) : std::nullopt) {
    refuse(s.id, turn.turn, failure::invalid, *why);
    return;
  }
  how.use_tts_template = turn.use_tts_template || turn.tts || !talk.clips.empty();
  how.generation_prompt = !options_.how.chat_im_end_is_doubled;
  auto text = chat::apply_template(talk.messages, how);
  if (options_.how.chat_im_end_is_doubled) text.add("<|im_end|>\n" + chat::generation_prompt(how));
  c.prompt = chat::encode_prompt(model_->text(), text, {talk.placeholders, {}}, true);
  if (std::ssize(c.prompt.ids) >= options_.info.context_tokens) {
    refuse(s.id, turn.turn, failure::context_full,
           "the messages make " + std::to_string(c.prompt.ids.size()) + " tokens, the context holds " +
               std::to_string(options_.info.context_tokens));
    return;
  }
  c.sampling = sampling_of(turn);
  if (turn.seed) c.chance.emplace(*turn.seed, substream::text);
  c.answer.emplace(model_->text(), options_.how, turn.max_new_tokens);
  c.turn = std::move(turn);
  s.tts_ms = s.token2wav_ms = 0;
  s.clips = std::move(talk.clips);
  s.began = engine_clock::now();
  s.why = purpose::turn;
  s.at = stage::clips;
  if (speaks) ask_voice(s, c.turn->tts_voice);
  if (s.clips.empty()) begin_prefill(s, purpose::turn, model_->llm().embed(c.prompt.ids));
}

/// The newest logits are there: one more token of the answer.
void omni_engine::answer(session& s) {
  auto& c = *s.chat;
  std::span<float> row(s.logits.mutable_data_ptr<float>(), static_cast<std::size_t>(s.logits.numel()));
  auto banned = c.speaks ? std::span<const token_id>(answer_ids_.unspeakable) : std::span<const token_id>();
  auto& chance = c.chance ? *c.chance : s.chance;
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
  done.used.input_text = std::ssize(c.prompt.ids) - done.used.input_audio;
  done.used.output_text = c.drawn;
  done.metrics.kv_cache_length = static_cast<int>(s.cache.length());
  done.metrics.tts_ms = s.tts_ms;
  done.metrics.token2wav_ms = s.token2wav_ms;
  if (c.speech)
    done.used.output_audio = done.metrics.n_tts_tokens = static_cast<int>(c.speech->tokens().tokens().size());
  if (!c.sound.empty() && reason != finish::cancelled)
    done.audio = std::make_shared<const std::vector<float>>(std::move(c.sound));
  if (s.at == stage::decode || c.drawn > 0) {
    done.metrics.prefill_ms = milliseconds(s.prefilled - s.began);
    done.metrics.generate_ms = milliseconds(now - s.prefilled);
    done.metrics.llm_ms = milliseconds((c.worded ? c.worded_at : now) - s.prefilled);
  }
  done.metrics.n_tokens = c.drawn;
  forget_turn(s);
  out_(std::move(done));
  next_job(s);
}

/// The session holds nothing of its turn any more.
void omni_engine::forget_turn(session& s) {
  auto waiting = std::move(s.chat->waiting);
  s.chat.emplace();
  s.chat->waiting = std::move(waiting);
  s.cache.truncate(0);
  s.rows.reset();
  s.clips.clear();
  s.at = s.speech_at = stage::idle;
  if (voices_ && std::exchange(s.voice_awaited, false)) voices_->forget(s.id);
}

} // namespace parley::inference
