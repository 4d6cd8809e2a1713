#include "inference/engine/tasks/duplex_session.hpp"

#include "base/assert.hpp"

#include <utility>

namespace parley::inference {

namespace {

duplex::unit_decoder_options decoder_options(const duplex_options& o) {
  duplex::unit_decoder_options to;
  to.force_listen_count = o.force_listen_count;
  to.max_new_tokens = o.max_new_speak_tokens_per_chunk;
  return to;
}

duplex::window_options window_options(const duplex_options& o) {
  duplex::window_options to;
  to.mode = o.window.value_or(to.mode);
  to.high_tokens = o.window_high_tokens.value_or(to.high_tokens);
  to.low_tokens = o.window_low_tokens.value_or(to.low_tokens);
  return to;
}

} // namespace

duplex_session::duplex_session(session_id number, std::uint64_t seed_of_all, llm::kv_cache keys,
                               const duplex_options& chosen, task_context& shared)
    : session(number, seed_of_all, std::move(keys)),
      with(shared), sampling{chosen.sampling, chosen.listen_prob_scale, chosen.listen_top_k},
      speech_temperature(chosen.tts_temperature), encoder(with.encoders.take()),
      decoder(with.model.text(), with.options.how, decoder_options(chosen)),
      window(with.model.text(), window_options(chosen)) {
  if (with.options.draws) scratch.records = &with.options.draws->text(id);
}

duplex_session::~duplex_session() {
  with.encoders.give_back(std::move(encoder));
  if (with.options.draws) with.options.draws->session_ended(id);
}

void duplex_session::give_voice(std::shared_ptr<const speech::voice> voice) {
  PARLEY_ASSERT(with.speaker && !speech, "a session gets one voice, of a model that speaks");
  speech::tts_sampling how;
  how.temperature = static_cast<float>(speech_temperature);
  if (with.options.draws) how.margins = &with.options.draws->speech(id);
  speech_chance = std::make_shared<random_stream>(seed, substream::speech_tokens);
  noise_chance = std::make_shared<random_stream>(seed, substream::noise);
  speech.emplace(with.speaker->models(), std::move(voice), how, speech_chance, noise_chance, with.options.how);
}

std::int64_t duplex_session::most_rows(int pieces) const {
  const auto& model = with.model.config();
  const auto sound = audio::audio_tokens(stream.config.chunk_samples() / audio::mel_hop_samples, model.audio.pool_step);
  const auto end = window.options().mode == window_mode::off ? 0 : 2;
  return std::ssize(tail) + 1 + pieces * (model.vision.query_num + 2) + sound + std::max(decoder.max_new_tokens(), 1) +
         end;
}

rng_state duplex_session::rng_now() const {
  rng_state now{chance.where(), {}, {}};
  if (speech_chance) now.speech = speech_chance->where();
  if (noise_chance) now.noise = noise_chance->where();
  return now;
}

void duplex_session::go_on_from(const rng_state& where) {
  chance.go_on_from(where.text);
  if (speech_chance) speech_chance->go_on_from(where.speech);
  if (noise_chance) noise_chance->go_on_from(where.noise);
}

} // namespace parley::inference
