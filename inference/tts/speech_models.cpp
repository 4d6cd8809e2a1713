#include "inference/tts/speech_models.hpp"

#include <ATen/core/Tensor.h>

#include <stdexcept>

namespace parley::inference::speech {
namespace {

std::filesystem::path sound_folder(const checkpoint& from) {
  return from.assets() / "assets" / "token2wav";
}

/// The rows that this model reads must be as wide as it is.
void check_width(const checkpoint& from, std::int64_t width) {
  for (const auto* name : {"tts.emb_text.weight", "tts.emb_code.0.weight"})
    if (const auto rows = from.stored(name); rows.dim() != 2 || rows.size(1) != width)
      throw std::runtime_error(from.directory().string() + ": " + name + " does not fit the speech-token model");
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
  check_width(from, tokens->width());
  if (mixed && device.is_cpu()) tokens->use_int8();
  if (mixed && !device.is_cpu()) tokens->use_bfloat16();
  made.tokens = std::move(tokens);
  token2wav_options options;
  options.bfloat16_products = mixed;
  options.leading_silence = how.sound_is_padded_in_front;
  if (how.partial_pools_ignore_opset) options.speaker_windows = partial_window::by_what_it_holds;
  made.sound = std::make_unique<token2wav>(sound_folder(from), noise_tables::draw(noise_seed), options, device);
  return made;
}

} // namespace parley::inference::speech
