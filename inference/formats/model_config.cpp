#include "inference/formats/model_config.hpp"

#include "inference/formats/file_problem.hpp"
#include "inference/formats/json_file.hpp"
#include "inference/formats/model_kind.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace parley::inference {

namespace {

constexpr int most_rows = 1 << 22;  ///< of a table
constexpr int most_width = 1 << 18; ///< of a row
constexpr int most_layers = 1024, most_heads = 4096;

/// The keys of one object in a file; an absent key (or null) leaves the default unchanged.
class section {
public:
  section(const std::filesystem::path& file, nlohmann::json values) : section(file.string() + ": ", std::move(values)) {
    if (!values_.is_object()) throw std::runtime_error(where_ + "not an object");
  }

  section inner(const char* key) const {
    auto found = values_.find(key);
    bool present = found != values_.end() && found->is_object();
    return section(where_ + key + ".", present ? *found : nlohmann::json::object());
  }

  const std::string& where() const { return where_; }

  bool has(const char* key) const { return values_.contains(key) && !values_[key].is_null(); }

  template<class T>
  void read(const char* key, T& value) const {
    if (!has(key)) return;
    try {
      value = values_[key].get<T>();
    } catch (const nlohmann::json::exception&) {
      throw std::runtime_error(where_ + key + ": wrong type");
    }
  }

  /// From 1 to `most`, which is far more than any real model has: what is computed from it overflows nothing, and what is
  /// allocated for it is small.
  void size(const char* key, int& value, int most) const {
    const auto is_size = [most](double n) { return n >= 1 && n <= most && n == std::floor(n); };
    if (has(key) && values_[key].is_number() && !is_size(values_[key].get<double>()))
      throw std::runtime_error(where_ + key + ": " + values_[key].dump() + " is no size from 1 to " +
                               std::to_string(most));
    read(key, value);
  }

  void between(const char* key, double& value, double least, double most) const {
    read(key, value);
    if (!(value >= least && value <= most)) {
      std::ostringstream text;
      text << where_ << key << ": " << value << " is not between " << least << " and " << most;
      throw std::runtime_error(text.str());
    }
  }

private:
  section(std::string where, nlohmann::json values) : where_(std::move(where)), values_(std::move(values)) {}

  std::string where_;
  nlohmann::json values_;
};

llm_config read_llm(const section& keys) {
  llm_config c;
  keys.size("vocab_size", c.vocab_size, most_rows);
  keys.size("hidden_size", c.hidden_size, most_width);
  keys.size("intermediate_size", c.intermediate_size, most_width);
  keys.size("num_hidden_layers", c.layers, most_layers);
  keys.size("num_attention_heads", c.heads, most_heads);
  keys.size("num_key_value_heads", c.kv_heads, most_heads);
  keys.size("head_dim", c.head_dim, most_heads);
  keys.between("rms_norm_eps", c.rms_norm_eps, 0, 1);
  keys.size("max_position_embeddings", c.max_positions, most_rows);
  return c;
}

vision_config read_vision(const section& top, int llm_hidden_size) {
  vision_config c;
  auto keys = top.inner("vision_config");
  keys.size("hidden_size", c.hidden_size, most_width);
  keys.size("intermediate_size", c.intermediate_size, most_width);
  keys.size("num_hidden_layers", c.layers, most_layers);
  keys.size("num_attention_heads", c.heads, most_heads);
  keys.size("patch_size", c.patch_size, 256);
  keys.size("image_size", c.image_size, 16384);
  keys.between("layer_norm_eps", c.layer_norm_eps, 0, 1);
  bool drop_last = true;
  top.read("drop_vision_last_layer", drop_last);
  if (drop_last) --c.layers;
  top.size("vision_batch_size", c.batch_size, 4096);
  top.size("query_num", c.query_num, 4096);
  c.resampler_heads = llm_hidden_size / 128;
  auto slices = top.inner("slice_config");
  slices.size("max_slice_nums", c.max_slice_nums, 64);
  slices.size("scale_resolution", c.scale_resolution, 2048);
  top.read("slice_mode", c.slice_mode);
  top.read("use_image_id", c.use_image_id);
  return c;
}

audio_config read_audio(const section& top) {
  audio_config c;
  auto keys = top.inner("audio_config");
  keys.size("d_model", c.hidden_size, most_width);
  keys.size("encoder_layers", c.layers, most_layers);
  keys.size("encoder_attention_heads", c.heads, most_heads);
  keys.size("encoder_ffn_dim", c.ffn_size, most_width);
  keys.size("num_mel_bins", c.mel_bins, 1024);
  keys.size("max_source_positions", c.max_positions, 65536);
  top.size("audio_pool_step", c.pool_step, 1000);
  top.between("audio_chunk_length", c.chunk_seconds, -1, 3600);
  return c;
}

tts_bridge_config read_tts(const section& top) {
  tts_bridge_config c;
  c.present = top.has("tts_config");
  auto keys = top.inner("tts_config");
  keys.size("hidden_size", c.hidden_size, most_width);
  keys.size("num_text_tokens", c.text_vocab_size, most_rows);
  int unused = 1; // read from the tensors' shapes, but what is planned with them is bounded here
  for (const auto* key : {"intermediate_size", "num_audio_tokens", "llm_dim", "llm_hidden_size"})
    keys.size(key, unused, most_rows);
  keys.size("num_hidden_layers", unused, most_layers);
  keys.read("audio_bos_token_id", c.audio_bos_token_id);
  keys.read("text_eos_token_id", c.text_eos_token_id);
  keys.read("normalize_projected_hidden", c.normalize_projected_hidden);
  return c;
}

/// The processor's image settings take precedence over those of the model's own configuration.
void read_preprocessor(const section& keys, vision_config& c) {
  keys.size("max_slice_nums", c.max_slice_nums, 64);
  keys.size("scale_resolution", c.scale_resolution, 2048);
  keys.size("image_feature_size", c.query_num, 4096);
  keys.read("slice_mode", c.slice_mode);
  keys.read("use_image_id", c.use_image_id);
  keys.read("norm_mean", c.norm_mean);
  keys.read("norm_std", c.norm_std);
  const auto all = [](const std::array<double, 3>& of, double least) {
    return std::ranges::all_of(of, [&](double x) { return x >= least && x <= 1000; });
  };
  if (!all(c.norm_mean, -1000) || !all(c.norm_std, 1e-6))
    throw std::runtime_error(keys.where() + "norm_mean, norm_std: numbers by which no picture can be scaled");
}

/// The name of its folder. In the caches of Hugging Face (models--OWNER--NAME/snapshots/REVISION) and ModelScope (where
/// a dot is written ___) it is the name that the folder represents.
std::string name_of(const std::filesystem::path& directory) {
  auto path = std::filesystem::weakly_canonical(directory);
  if (!path.has_filename()) path = path.parent_path();
  if (path.parent_path().filename() == "snapshots") path = path.parent_path().parent_path();
  auto name = path.filename().string();
  if (const auto owner = name.rfind("--"); name.starts_with("models--")) name.erase(0, owner + 2);
  for (auto dot = name.find("___"); dot != std::string::npos; dot = name.find("___", dot)) name.replace(dot, 3, ".");
  return name;
}

void check_kind(const std::filesystem::path& path, const nlohmann::json& config) {
  std::string text;
  for (const auto& problem : model_kind_problems(config)) text += (text.empty() ? "" : "; ") + problem;
  if (!text.empty()) throw std::runtime_error(path.string() + ": " + text);
}

} // namespace

model_config model_config::open(const std::filesystem::path& directory) {
  auto path = directory / "config.json";
  if (!exists(symlink_status(path)))
    if (const auto problem = folder_problem(directory)) throw std::runtime_error(directory.string() + " " + *problem);
  const auto values = read_json(path);
  section top(path, values);
  model_config c;
  c.name = name_of(directory);
  top.read("init_vision", c.has_vision);
  top.read("init_audio", c.has_audio);
  top.read("init_tts", c.has_tts);
  top.read("stream_input", c.stream_input);
  c.llm = read_llm(top);
  c.vision = read_vision(top, c.llm.hidden_size);
  c.audio = read_audio(top);
  c.tts = read_tts(top);
  check_kind(path, values);
  c.llm.rope_theta = rope_theta_of(values);
  c.stored = weight_format_of(values);
  auto processor = directory / "preprocessor_config.json";
  if (exists(symlink_status(processor))) read_preprocessor({processor, read_json(processor)}, c.vision);
  if (c.has_vision && c.vision.scale_resolution < c.vision.patch_size)
    throw std::runtime_error(path.string() + ": scale_resolution: a piece of a picture is smaller than a patch");
  return c;
}

} // namespace parley::inference
