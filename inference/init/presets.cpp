#include "inference/init/presets.hpp"

#include <stdexcept>
#include <string>

namespace parley::inference::init {

namespace {

/// The parameters that differ between presets.
struct sizes {
  int hidden, layers, heads, kv_heads, head_dim, ffn;
  int vision_hidden, vision_layers, vision_heads,
      vision_ffn; // vision_layers: as stored in config, one more than is used
  int audio_hidden, audio_layers, audio_heads, audio_ffn;
  int tts_hidden, tts_layers, tts_heads, tts_ffn, tts_text_tokens;
  std::int64_t base_tokens, unk_id;
};

constexpr sizes tiny{256, 3, 4, 2, 48, 192, 48, 3, 4, 80, 64, 2, 4, 256, 16, 2, 2, 48, 1920, 1756, 1756};
constexpr sizes mid{1024, 28, 16, 8, 128, 3072, 384, 7, 6, 1536, 384, 6, 6, 1536, 256, 8, 4, 1024, 32256, 31894, 31894};
// docs/model/thinker.md 0, docs/model/talker.md 1.
constexpr sizes real{4096, 36, 32,   8,   128, 12288, 1152, 27,     16,     4304,  1024,
                     24,   16, 4096, 768, 20,  12,    3072, 152064, 151643, 128244};

/// Tokens added besides `<unk>`, in the order of their ids (added_tokens.cpp).
constexpr std::int64_t added_behind_base = 105;
// Positions in that order.
constexpr std::int64_t endoftext = 0;
constexpr std::int64_t im_end = 2;
constexpr std::int64_t tts_audio_bos = 44; // <focus>
constexpr std::int64_t tts_text_eos = 49;  // </perception>

nlohmann::json vision_json(const sizes& s) {
  return {{"model_type", "siglip_vision_model"},
          {"hidden_size", s.vision_hidden},
          {"image_size", 980},
          {"intermediate_size", s.vision_ffn},
          {"num_attention_heads", s.vision_heads},
          {"num_hidden_layers", s.vision_layers},
          {"patch_size", 14},
          {"num_channels", 3},
          {"hidden_act", "gelu_pytorch_tanh"},
          {"layer_norm_eps", 1e-6},
          {"attention_dropout", 0.0}};
}

nlohmann::json audio_json(const sizes& s) {
  return {{"model_type", "whisper"},
          {"d_model", s.audio_hidden},
          {"encoder_layers", s.audio_layers},
          {"encoder_attention_heads", s.audio_heads},
          {"encoder_ffn_dim", s.audio_ffn},
          {"num_mel_bins", 80},
          {"max_source_positions", 1500},
          {"activation_function", "gelu"},
          {"dropout", 0.0}};
}

nlohmann::json tts_json(const sizes& s, std::int64_t first_added) {
  return {{"model_type", "minicpmtts"},
          {"attention_type", "full_attention"},
          {"audio_bos_token_id", first_added + tts_audio_bos},
          {"text_eos_token_id", first_added + tts_text_eos},
          {"audio_tokenizer_sample_rate", 16000},
          {"audio_tokenizer_type", "s3tokenizer"},
          {"backbone_model", "llama"},
          {"condition_type", "hidden_text_merge"},
          {"hidden_act", "silu"},
          {"hidden_size", s.tts_hidden},
          {"intermediate_size", s.tts_ffn},
          {"interleaved", false},
          {"llm_dim", s.hidden},
          {"llm_hidden_size", s.hidden},
          {"max_position_embeddings", 4096},
          {"normalize_projected_hidden", true},
          {"num_attention_heads", s.tts_heads},
          {"num_audio_tokens", 6562},
          {"num_hidden_layers", s.tts_layers},
          {"num_key_value_heads", s.tts_heads},
          {"num_text_tokens", s.tts_text_tokens},
          {"num_vq", 1},
          {"projector_type", "mlp"},
          {"recomputed_chunks", 1},
          {"window_size", 2},
          {"repetition_penalty", 1.05},
          {"top_k", 25},
          {"top_p", 0.85},
          {"temperature", 0.8},
          {"s3_stream_chunk_size", 25},
          {"s3_stream_n_timesteps", 10},
          {"s3_stream_prelook_size", 3}};
}

bool is_published(const sizes& s) {
  return s.hidden == real.hidden;
}

preset make(const sizes& s, sound_sizes sound = small_sound_sizes()) {
  // `<unk>` is one of the base tokens, or the first id after them.
  auto first_added = s.unk_id < s.base_tokens ? s.base_tokens : s.base_tokens + 1;
  nlohmann::json c{{"architectures", {"MiniCPMO"}},
                   {"model_type", "minicpmo"},
                   {"version", "4.5"},
                   {"torch_dtype", "bfloat16"},
                   {"vocab_size", first_added + added_behind_base},
                   {"hidden_size", s.hidden},
                   {"intermediate_size", s.ffn},
                   {"num_hidden_layers", s.layers},
                   {"num_attention_heads", s.heads},
                   {"num_key_value_heads", s.kv_heads},
                   {"head_dim", s.head_dim},
                   {"hidden_act", "silu"},
                   {"max_position_embeddings", 40960},
                   {"rms_norm_eps", 1e-6},
                   {"rope_theta", 1000000},
                   {"attention_bias", false},
                   {"tie_word_embeddings", false},
                   {"bos_token_id", first_added + endoftext},
                   {"eos_token_id", first_added + im_end},
                   {"query_num", 64},
                   {"image_size", 448},
                   {"drop_vision_last_layer", true},
                   {"batch_vision_input", true},
                   {"patch_size", 14},
                   {"slice_config", {{"max_slice_nums", 9}, {"patch_size", 14}, {"scale_resolution", 448}}},
                   {"slice_mode", true},
                   {"use_image_id", true},
                   {"vision_batch_size", 16},
                   {"audio_pool_step", 5},
                   {"audio_chunk_length", 1.0},
                   {"stream_input", true},
                   {"init_vision", true},
                   {"init_audio", true},
                   {"init_tts", true}};
  if (is_published(s)) {
    c["drop_vision_last_layer"] = false;
    c["slice_config"]["max_slice_nums"] = 1; // preprocessor_config.json says 9 and takes precedence
    c["listen_speak_type"] = "asr";
    c["rope_scaling"] = nullptr;
  }
  c["vision_config"] = vision_json(s);
  c["audio_config"] = audio_json(s);
  c["tts_config"] = tts_json(s, first_added);
  return {std::move(c), s.base_tokens, s.unk_id, std::move(sound)};
}

} // namespace

preset find_preset(std::string_view name) {
  if (name == "tiny") return make(tiny);
  if (name == "mid") return make(mid);
  if (name == "minicpm-o-4.5") return make(real, published_sound_sizes());
  throw std::invalid_argument("unknown preset \"" + std::string(name) + "\": tiny, mid or minicpm-o-4.5");
}

} // namespace parley::inference::init
