#include "inference/formats/model_kind.hpp"

#include "inference/formats/json_file.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <stdexcept>

namespace parley::inference {

namespace {

using nlohmann::json;

/// Shows a string as it is, and anything else as JSON.
std::string shown(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

class problems {
public:
  explicit problems(std::vector<std::string>& out) : out_(out) {}

  void add(std::string sentence) { out_.push_back(std::move(sentence)); }

  /// `from[key]`, if present, must be one of these.
  void require(const json& from, const std::string& where, const char* key, std::initializer_list<json> known) {
    const auto& value = member(from, key);
    if (value.is_null() || std::find(known.begin(), known.end(), value) != known.end()) return;
    add(where + key + " is " + shown(value) + ", and only " + shown(*known.begin()) + " is implemented");
  }

private:
  std::vector<std::string>& out_;
};

/// The successor model comes in folders of the same name.
void check_version(const json& config, problems& out) {
  const auto& text_model = member(config, "text_model_type");
  const auto& version = member(config, "version");
  const auto said = version.is_number() ? json(version.get<double>()).dump() : version.is_null() ? "" : shown(version);
  if (!text_model.is_null() || said.starts_with("4.6")) {
    out.add("this is MiniCPM-o " + (said.empty() ? std::string("of another version than 4.5") : said) +
            (text_model.is_null() ? std::string() : " (text_model_type " + shown(text_model) + ")") +
            ", another model than MiniCPM-o 4.5, the only one that is implemented");
    return;
  }
  if (const auto& type = member(config, "model_type"); !type.is_null() && type != "minicpmo")
    out.add("model_type is " + shown(type) + ": this is no MiniCPM-o");
  else if (!said.empty() && said != "4.5")
    out.add("version is " + said + ", and only MiniCPM-o 4.5 is implemented");
}

void check_positions(const json& config, problems& out) {
  try {
    rope_theta_of(config);
  } catch (const std::runtime_error& e) {
    out.add(e.what());
  }
  for (const auto* key : {"rope_scaling", "rope_parameters"}) {
    const auto& scaling = member(config, key);
    for (const auto* name : {"rope_type", "type"})
      if (const auto& type = member(scaling, name); !type.is_null() && type != "default")
        out.add(std::string(key) + "." + name + " is " + shown(type) + ", and no scaling of positions is implemented");
  }
  if (member(config, "use_sliding_window") == true)
    out.add("use_sliding_window is true, and attention within a window is not implemented");
}

void check_quantization(const json& config, problems& out) {
  const auto& quantization = member(config, "quantization_config");
  if (quantization.is_null()) return;
  const auto& method = member(quantization, "quant_method");
  if (method != "awq") {
    out.add("quantization_config.quant_method is " + shown(method) +
            ": weights in this format can't be read, only plain ones and awq");
    return;
  }
  const std::string where = "quantization_config.";
  out.require(quantization, where, "bits", {4});
  out.require(quantization, where, "version", {"gemm", "GEMM"});
  out.require(quantization, where, "zero_point", {true});
  if (const auto& group = member(quantization, "group_size");
      !group.is_null() && !(group.is_number_integer() && group.get<int>() > 0 && group.get<int>() % 32 == 0))
    out.add(where + "group_size is " + shown(group) + ", and it must be a multiple of 32");
}

void check_encoders(const json& config, problems& out) {
  if (member(config, "init_vision") != false) {
    const auto& vision = member(config, "vision_config");
    out.require(vision, "vision_config.", "model_type", {"siglip_vision_model"});
    out.require(vision, "vision_config.", "hidden_act", {"gelu_pytorch_tanh"});
  }
  if (member(config, "init_audio") != false) {
    const auto& audio = member(config, "audio_config");
    out.require(audio, "audio_config.", "model_type", {"whisper"});
    out.require(audio, "audio_config.", "activation_function", {"gelu"});
  }
}

void check_speech(const json& config, problems& out) {
  if (member(config, "init_tts") == false) return;
  const auto& tts = member(config, "tts_config");
  const std::string where = "tts_config.";
  out.require(tts, where, "condition_type", {"hidden_text_merge"});
  out.require(tts, where, "projector_type", {"mlp"});
  out.require(tts, where, "backbone_model", {"llama"});
  out.require(tts, where, "hidden_act", {"silu"});
  out.require(tts, where, "num_vq", {1});
  out.require(tts, where, "interleaved", {false});
  out.require(tts, where, "attention_type", {"full_attention", "sliding_window", "sliding_recompute", "reindex"});
}

} // namespace

std::vector<std::string> model_kind_problems(const nlohmann::json& config) {
  std::vector<std::string> result;
  problems out(result);
  check_version(config, out);
  if (!result.empty()) return result; // if it is another model, other problems do not matter
  check_positions(config, out);
  check_quantization(config, out);
  out.require(config, "", "hidden_act", {"silu"});
  out.require(config, "", "attention_bias", {false});
  out.require(config, "", "tie_word_embeddings", {false});
  check_encoders(config, out);
  check_speech(config, out);
  return result;
}

weight_format weight_format_of(const nlohmann::json& config) {
  weight_format result;
  const auto& quantization = member(config, "quantization_config");
  result.awq = member(quantization, "quant_method") == "awq";
  if (const auto& group = member(quantization, "group_size"); group.is_number_integer())
    result.group_size = group.get<int>();
  return result;
}

double rope_theta_of(const nlohmann::json& config) {
  for (const auto* from : {&config, &member(config, "rope_parameters")})
    if (const auto& theta = member(*from, "rope_theta"); theta.is_number() && theta.get<double>() > 1)
      return theta.get<double>();
  throw std::runtime_error("rope_theta is missing (nor is it under rope_parameters), and no default would be right");
}

} // namespace parley::inference
