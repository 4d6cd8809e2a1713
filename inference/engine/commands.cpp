#include "inference/chat/conversation.hpp"
#include "inference/engine/omni_engine.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <random>

namespace parley::inference {

namespace {

constexpr std::size_t most_waiting = 64; ///< units or turns of one session; the gateway sends one at a time

std::uint64_t random_seed() {
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32 | entropy();
}

duplex::unit_decoder_options decoder_options(const duplex_options& o) {
  duplex::unit_decoder_options to;
  to.force_listen_count = o.force_listen_count;
  to.max_new_tokens = o.max_new_speak_tokens_per_chunk;
  return to;
}

duplex::window_options window_options(const duplex_options& o) {
  duplex::window_options to;
  to.mode = o.window;
  to.high_tokens = o.window_high_tokens.value_or(to.high_tokens);
  to.low_tokens = o.window_low_tokens.value_or(to.low_tokens);
  return to;
}

/// Of what is answered by its number; 0 = the session is what it is about.
std::uint64_t answer_number(const command& order) {
  if (const auto* unit = std::get_if<submit_unit>(&order)) return unit->unit;
  const auto* turn = std::get_if<submit_turn>(&order);
  return turn ? turn->turn : 0;
}

} // namespace

void omni_engine::handle(command&& order) {
  const auto id = std::visit([](const auto& o) { return o.session; }, order);
  const auto number = answer_number(order);
  try {
    c10::InferenceMode guard;
    use_threads();
    std::visit([this](auto&& o) { take(std::move(o)); }, std::move(order));
  } catch (...) {
    const words_of_exception why;
    auto* s = find(id);
    if (s && number == 0)
      fail(*s, failure::inference, why.text);
    else
      refuse(id, number, failure::inference, why.text); // it is not in line yet
  }
  bury();
}

session* omni_engine::find(session_id id) {
  auto found = sessions_.find(id);
  return found == sessions_.end() || found->second->over ? nullptr : found->second.get();
}

session* omni_engine::admit(session_id id, std::optional<std::uint64_t> seed) {
  if (find(id)) {
    refuse(id, 0, failure::inference, "the session is open already");
    return nullptr;
  }
  // Not the slots that are offered now: who was granted one of more has it.
  if (std::ssize(sessions_) >= std::max(options_.most_sessions, options_.info.slots)) {
    refuse(id, 0, failure::inference, "no slot is free");
    return nullptr;
  }
  auto chosen = seed ? *seed : options_.seed ? *options_.seed : random_seed();
  auto* s = sessions_.emplace(id, std::make_unique<session>(id, pool_.open(), chosen)).first->second.get();
  if (options_.draws) s->scratch.records = &(*options_.draws)[id];
  return s;
}

/// One that an ended session had, or a new one.
audio::encoder_cache omni_engine::encoder_cache() {
  if (spare_encoders_.empty()) return model_->make_encoder_cache();
  auto spare = std::move(spare_encoders_.back());
  spare_encoders_.pop_back();
  spare.clear();
  return spare;
}

void omni_engine::take(open_duplex&& order) {
  auto* s = admit(order.session, order.seed);
  if (!s) return;
  if (!model_->hears()) {
    fail(*s, failure::invalid, "this model does not hear");
    return;
  }
  const auto& text = model_->text();
  const auto& o = order.options;
  s->duplex.emplace(llm::duplex_sampling{o.sampling, o.listen_prob_scale, o.listen_top_k}, encoder_cache(),
                    duplex::unit_decoder(text, options_.how, decoder_options(o)),
                    duplex::window(text, window_options(o)));
  if (options_.trace_draws) s->scratch.records = &trace_.text(s->id);
  s->began = engine_clock::now();
  s->why = purpose::prompt;
  chat::rendered_text prefix;
  prefix.add("<|im_start|>system\n");
  prefix.quote(order.system_prompt);
  prefix.add("\n<|audio_start|>");
  s->duplex->prompt.prefix = text.encode(prefix.text, prefix.quoted);
  if (order.voice && !order.voice->empty()) s->duplex->prompt.voice = std::move(order.voice);
  if (talker_ && o.generate_audio) {
    if (auto why = voice_objection(order.tts_voice)) {
      fail(*s, failure::invalid, *why);
      return;
    }
    s->duplex->speech_temperature = o.tts_temperature;
    ask_voice(*s, order.tts_voice);
  }
  guarded(*s, [&] { begin_prompt(*s); });
}

void omni_engine::take(open_chat&& order) {
  auto* s = admit(order.session, order.seed);
  if (!s) return;
  s->chat.emplace();
  if (order.chance) s->go_on_from(*order.chance);
  out_(opened{order.session, 0, {}, s->seed});
}

void omni_engine::take(submit_unit&& order) {
  auto* s = find(order.session);
  if (!s || !s->duplex) {
    refuse(order.session, order.unit, failure::inference, "no such duplex session");
  } else if (s->units.size() >= most_waiting) {
    refuse(order.session, order.unit, failure::inference, "too many units wait");
  } else if (auto pictures = order_pictures(s->id, order.frames, order.max_slice_nums)) {
    s->units.push_back({std::move(order), *std::move(pictures)});
    next_job(*s);
  } else {
    refuse(order.session, order.unit, failure::inference, "too many pictures wait");
  }
}

void omni_engine::take(submit_turn&& order) {
  auto* s = find(order.session);
  if (!s || !s->chat) {
    refuse(order.session, order.turn, failure::inference, "no such chat session");
  } else if (s->turns.size() >= most_waiting) {
    refuse(order.session, order.turn, failure::inference, "too many turns wait");
  } else if (auto pictures = order_pictures(s->id, chat::pictures_in(order),
                                            order.max_slice_nums.value_or(model_->config().vision.max_slice_nums))) {
    s->turns.push_back({std::move(order), *std::move(pictures)});
    next_job(*s);
  } else {
    refuse(order.session, order.turn, failure::inference, "too many pictures wait");
  }
}

void omni_engine::take(cut&& order) {
  auto* s = find(order.session);
  if (!s || !s->duplex || !s->duplex->unit) return;
  auto& d = *s->duplex;
  if (d.unit->replay && d.unit->replay->finished) return;
  if (s->speech_at != stage::idle) {
    guarded(*s, [&] { cut_speech(*s); });
  } else if (s->at == stage::decode) {
    guarded(*s, [&] {
      if (d.cut == cut_point::none) d.cut = cut_point::deciding;
      d.decoder.cut();
      settle(*s);
    });
  } else if (d.unit->replay) {
    d.cut_awaits = true;
  } else {
    d.force_listen = true;
  }
}

void omni_engine::take(cancel_turn&& order) {
  auto* s = find(order.session);
  if (s && s->chat && s->chat->turn) finish_turn(*s, finish::cancelled);
}

void omni_engine::take(close_session&& order) {
  end(order.session);
  out_(closed{order.session});
}

} // namespace parley::inference
