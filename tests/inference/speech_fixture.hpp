#pragma once

#include "inference/tts/duplex_speech.hpp"
#include "inference/voice/reference_voice.hpp"
#include "tests/inference/sounds.hpp"

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference::testing {

inline const std::filesystem::path talker_folder = "tests/data/checkpoints/tiny-talker";

/// The tiny talker, loaded once.
inline const speech::speech_models& speaking_models() {
  static const auto models = [] {
    const auto tts = talker_folder / "tts";
    const auto weights = checkpoint::open(tts);
    speech::speech_models made;
    made.config = speech::tts_config::open(tts / "config.json");
    made.embeddings = std::make_unique<speech::tts_embeddings>(speech::tts_embeddings::open(weights, made.config));
    made.tokens = std::make_unique<speech::tts_llama>(speech::read_tts_weights(weights), made.config);
    made.sound = std::make_unique<speech::token2wav>(talker_folder / "token2wav", speech::noise_tables::draw(1));
    return made;
  }();
  return models;
}

/// A 16 kHz recording, different for each seed.
inline std::vector<float> recording(double seconds, unsigned seed) {
  return some_sound(seed, static_cast<std::size_t>(seconds * 16000));
}

inline std::shared_ptr<const speech::voice> prepared(const speech::token2wav& sound, std::span<const float> samples) {
  return sound.prepare(sound.ear().hear(samples));
}

inline std::shared_ptr<const speech::voice> some_voice(unsigned seed = 1) {
  return prepared(*speaking_models().sound, recording(1.5, seed));
}

/// Arbitrary speech tokens, not chosen by a model.
inline std::vector<std::int64_t> some_tokens(std::size_t n, std::uint64_t seed) {
  random_stream chance(seed, substream::speech_tokens);
  std::vector<std::int64_t> tokens(n);
  for (auto& token : tokens) token = static_cast<std::int64_t>(chance.next() * 6561);
  return tokens;
}

/// The words of a unit: rows as the thinker would make them, then the mark.
inline at::Tensor some_condition(std::int64_t words, std::uint64_t seed) {
  const auto& embeddings = *speaking_models().embeddings;
  random_stream chance(seed, substream::text);
  const auto rows = speech::gaussian_noise(chance, words, embeddings.audio_bos().size(1)).squeeze(0);
  return at::cat({rows, embeddings.audio_bos()}, 0);
}

} // namespace parley::inference::testing
