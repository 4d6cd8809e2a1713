#pragma once

#include "inference/tts/condition.hpp"
#include "inference/tts/embeddings.hpp"
#include "inference/tts/llama.hpp"
#include "inference/verify/golden_set.hpp"
#include "inference/verify/report.hpp"
#include "inference/vocoder/token2wav.hpp"

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace parley::inference::verify {

/// Tolerances of docs/model/talker.md 12, for `golden_error`.
namespace talker_tolerance {
inline constexpr double module = 2e-5, ode_state = 5e-5, velocity = 1e-4, vocoder = 2e-5, original_vocoder = 1e-3,
                        stream = 1.5e-3;
}

/// The talker's recordings, and the models on which they are replayed.
class talker_set {
public:
  explicit talker_set(golden_set& files);

  const nlohmann::json& manifest() const { return manifest_; }
  const nlohmann::json& entry(const std::string& name) const { return manifest_.at(name); }

  /// A tensor of a golden file, in its recorded type.
  at::Tensor tensor(const std::string& stem, const std::string& name) { return files_.tensors(stem).tensor(name); }
  bool has(const std::string& stem, const std::string& name) { return files_.tensors(stem).has(name); }

  /// The recorded values of an output.
  golden_values golden(const std::string& stem, const std::string& name) {
    return golden_of(files_.tensors(stem), name);
  }
  bool has_golden(const std::string& stem, const std::string& name) {
    return verify::has_golden(files_.tensors(stem), name);
  }

  /// The samples of a prompt case [channels, n]: recorded, or those of its WAV file in the model's `voices`.
  at::Tensor file_samples(const std::string& prompt);

  const speech::tts_config& tts_config();
  const speech::tts_embeddings& embeddings();
  const llm::tts_condition& words();
  checkpoint tts_checkpoint() const { return checkpoint::open(files_.model_directory() / "tts"); }

  /// The TTS model with the attention type and the window of a recorded case.
  speech::tts_llama llama(const nlohmann::json& recorded);

  std::filesystem::path folder(speech::token2wav::generation kind) const;
  const speech::noise_tables& noise();
  const speech::token2wav& causal();
  std::unique_ptr<speech::token2wav> load(speech::token2wav::generation kind, int steps);
  std::unique_ptr<speech::flow> load_flow(int steps);
  int steps() const { return manifest_.at("_set").value("n_timesteps", 5); }

  /// The recorded features of a voice: tokens, speaker vector and mel of a prompt case.
  speech::voice_features recorded_voice(const std::string& prompt);

  /// The prompt case of a WAV file, with or without its extension: "prompt_a" of "public_a.wav".
  std::string prompt_of(const std::string& wav) const;

private:
  const speech::tensor_map& tts_weights();

  golden_set& files_;
  const nlohmann::json& manifest_;
  std::optional<speech::tts_config> tts_config_;
  std::optional<speech::tensor_map> tts_weights_;
  std::optional<speech::tts_embeddings> embeddings_;
  std::optional<llm::tts_condition> words_;
  std::optional<speech::noise_tables> noise_;
  std::unique_ptr<speech::token2wav> causal_;
};

/// A group of talker cases and the function that replays them; a case belongs to the first whose prefix fits its name.
struct talker_family {
  std::string_view prefix;
  void (*replay)(talker_set& set, const std::string& name, report& out);
};

// The groups; docs/model/talker.md 12 describes their files. A call replays one case of the manifest.
void replay_talker_inputs(talker_set& set, const std::string& name, report& out);
void replay_tts_condition(talker_set& set, const std::string& name, report& out);
void replay_tts_stream(talker_set& set, const std::string& name, report& out);
void replay_tts_duplex(talker_set& set, const std::string& name, report& out);
void replay_tts_generate(talker_set& set, const std::string& name, report& out);
void replay_prompt(talker_set& set, const std::string& name, report& out);
void replay_s3_long(talker_set& set, const std::string& name, report& out);
void replay_pcm_unit(talker_set& set, const std::string& name, report& out);
void replay_flow_setup(talker_set& set, const std::string& name, report& out);
void replay_flow_chunk_steps(talker_set& set, const std::string& name, report& out);
void replay_flow_chunk(talker_set& set, const std::string& name, report& out);
void replay_flow_full(talker_set& set, const std::string& name, report& out);
void replay_dit_unit(talker_set& set, const std::string& name, report& out);
void replay_vocoder_causal(talker_set& set, const std::string& name, report& out);
void replay_vocoder_causal_decode(talker_set& set, const std::string& name, report& out);
void replay_vocoder_original(talker_set& set, const std::string& name, report& out);
void replay_stream_turn(talker_set& set, const std::string& name, report& out);
void replay_stream_duplex(talker_set& set, const std::string& name, report& out);
void replay_stream_flush(talker_set& set, const std::string& name, report& out);
void replay_stream_chat(talker_set& set, const std::string& name, report& out);
void replay_stream_legacy(talker_set& set, const std::string& name, report& out);
void replay_nonstream_call(talker_set& set, const std::string& name, report& out);

// Recorded token ids: a tensor of any integer type, or a list.
std::vector<std::int64_t> as_tokens(const at::Tensor& tensor);
std::vector<std::int64_t> as_tokens(const nlohmann::json& list);

} // namespace parley::inference::verify
