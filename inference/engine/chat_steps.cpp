#include "inference/chat/template.hpp"
#include "inference/engine/omni_engine.hpp"
#include "inference/temperature.hpp"
#include "inference/vision/placeholder.hpp"

#include <ATen/ATen.h>

namespace parley::inference {

namespace {

double milliseconds(engine_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

/// What a turn's messages come to.
struct conversation {
  std::vector<chat::template_message> messages;
  chat::placeholders media;
  std::vector<std::vector<float>> clips; ///< the sounds of each message, joined
  std::int64_t media_rows = 0;           ///< of all placeholders, with two marks each
  std::string objection;
};

/// Bytes that stand for pictures and sounds.
std::size_t marks_in(const chat::rendered_text& text) {
  auto bytes = std::size_t{0};
  for (const auto& a : text.attachments) bytes += a.end - a.begin;
  return bytes;
}

/// No token of the published vocabulary is longer.
constexpr std::size_t longest_token_bytes = 256;

/// What a conversation comes to at least: each placeholder's rows, and of the text only its bytes are looked at.
std::int64_t least_tokens(const conversation& talk, std::size_t bytes_a_token) {
  auto bytes = std::size_t{0};
  for (const auto& m : talk.messages) bytes += m.content.text.size() - marks_in(m.content);
  return talk.media_rows + static_cast<std::int64_t>(bytes / bytes_a_token);
}

std::size_t samples_in(const message& m) {
  auto samples = std::size_t{0};
  for (const auto& item : m.content) {
    if (const auto* sound = std::get_if<audio_item>(&item)) samples += sound->samples ? sound->samples->size() : 0;
    if (const auto* video = std::get_if<video_item>(&item)) samples += video->samples ? video->samples->size() : 0;
  }
  return samples;
}

/// Goes through the messages of one turn.
class reader {
public:
  /// `pictures` of the turn, sliced; none when the model does not see.
  reader(const model_config& model, std::span<const vision::sliced_picture> pictures)
      : model_(model), pictures_(pictures) {}

  conversation read(const submit_turn& turn) {
    for (const auto& m : turn.messages) {
      content_ = {};
      sound_.clear();
      rows_left_ = chat::heard_rows(samples_in(m), model_.audio.pool_step);
      first_ = true;
      separator_ = turn.omni_mode ? "" : "\n";
      for (const auto& item : m.content) std::visit([this](const auto& i) { add(i); }, item);
      talk_.messages.push_back({m.from, std::move(content_)});
      if (!sound_.empty()) talk_.clips.push_back(std::move(sound_));
    }
    if (talk_.messages.empty()) talk_.objection = "messages: empty";
    return std::move(talk_);
  }

private:
  void separate() {
    if (!std::exchange(first_, false)) content_.add(separator_);
  }

  void add(const text_item& item) {
    separate();
    content_.quote(item.text);
  }

  void add(const audio_item& item) {
    if (item.samples && !item.samples->empty())
      add_sound(*item.samples);
    else
      talk_.objection = "audio: empty";
  }

  void add(const image_item&) { add_picture(); }

  /// Every `stack_frames` pictures come behind their second of sound; what sound is left comes last.
  void add(const video_item& item) {
    std::span<const float> sound;
    if (item.samples) sound = *item.samples;
    for (auto i = std::size_t{0}; i < item.frames.size(); ++i) {
      if (!sound.empty() && i % static_cast<std::size_t>(std::max(item.stack_frames, 1)) == 0) {
        auto second = sound.first(std::min<std::size_t>(sound.size(), audio::sample_rate));
        sound = sound.subspan(second.size());
        add_sound(second);
      }
      add_picture();
    }
    if (!sound.empty()) add_sound(sound);
  }

  void add_sound(std::span<const float> samples) {
    separate();
    content_.attach(chat::medium::audio, talk_.media.audio.size());
    // Each sound counts its own rows, but they are heard joined, which may give fewer: then the last ones go short.
    const auto rows = std::min(chat::heard_rows(samples.size(), model_.audio.pool_step), rows_left_);
    rows_left_ -= rows;
    talk_.media.audio.push_back(chat::audio_placeholder(rows));
    talk_.media_rows += rows + 2;
    sound_.insert(sound_.end(), samples.begin(), samples.end());
  }

  void add_picture() {
    const auto number = talk_.media.image.size();
    if (number >= pictures_.size()) {
      talk_.objection = "images: this model does not see";
      return;
    }
    separate();
    content_.attach(chat::medium::image, number);
    talk_.media_rows += std::ssize(pictures_[number].pieces) * (model_.vision.query_num + 2);
    talk_.media.image.push_back(
        vision::image_placeholder(pictures_[number].grid, model_.vision.query_num,
                                  model_.vision.use_image_id ? std::optional(number) : std::nullopt));
  }

  const model_config& model_;
  std::span<const vision::sliced_picture> pictures_;
  conversation talk_;
  chat::rendered_text content_;
  std::vector<float> sound_;
  std::int64_t rows_left_ = 0; ///< of the message's sound
  std::string_view separator_;
  bool first_ = true;
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
  auto talk = reader(model_->config(), pictures).read(turn);
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
  if (const auto least = least_tokens(talk, longest_token_bytes); least >= options_.info.context_tokens) {
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
