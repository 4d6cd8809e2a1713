#include "inference/tts/speech_models.hpp"

namespace parley::inference::speech {
namespace {

std::filesystem::path sound_folder(const checkpoint& from) {
  return from.assets() / "assets" / "token2wav";
}

} // namespace

std::optional<std::string> speech_models::missing(const checkpoint& from) {
  if (!from.has("tts.emb_text.weight")) return from.directory().string() + " has no tensors of the speech-token model";
  if (exists(sound_folder(from) / "flow.pt")) return std::nullopt;
  return (sound_folder(from) / "flow.pt").string() +
         " is missing (worker.assets can name another folder that holds assets/token2wav)";
}

speech_models speech_models::load(const checkpoint& from, std::uint64_t noise_seed, quirks how, at::Device device,
                                  config::speech_dtype dtype) {
  const bool mixed = dtype == config::speech_dtype::mixed;
  speech_models made;
  made.config = tts_config::open(from.directory() / "config.json");
  made.embeddings = std::make_unique<tts_embeddings>(tts_embeddings::open(from, made.config, device));
  auto tokens = std::make_unique<tts_llama>(read_tts_weights(from, device), made.config);
  if (mixed) tokens->use_int8();
  made.tokens = std::move(tokens);
  token2wav_options options;
  options.bfloat16_products = mixed;
  options.leading_silence = how.sound_is_padded_in_front;
  if (how.partial_pools_ignore_opset) options.speaker_windows = partial_window::by_what_it_holds;
  made.sound = std::make_unique<token2wav>(sound_folder(from), noise_tables::draw(noise_seed), options, device);
  return made;
}

} // namespace parley::inference::speech
