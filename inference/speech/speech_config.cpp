#include "inference/speech/speech_config.hpp"

#include "inference/formats/file_problem.hpp"
#include "inference/formats/json_file.hpp"
#include "inference/kernels/vocoder.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <yaml-cpp/yaml.h>

namespace parley::inference::speech {
namespace {

template<class T>
void read(const nlohmann::json& from, const char* key, T& to) {
  if (auto found = from.find(key); found != from.end() && !found->is_null()) found->get_to(to);
}

template<class T>
void read(const YAML::Node& from, const char* key, T& to) {
  if (auto found = from[key]) to = found.template as<T>();
}

constexpr std::size_t largest_yaml = 1 << 20;

/// hyperpyyaml tags (`!new:module.class`) name Python classes; they are ignored.
YAML::Node part(const std::filesystem::path& file, const char* key) {
  auto root = YAML::Load(read_whole_file(file, largest_yaml));
  auto found = root[key];
  if (!found || !found.IsMap()) throw std::runtime_error(std::string("no \"") + key + "\"");
  return found;
}

/// The largest rate, dilation and product of all rates that is accepted. No real vocoder comes near it.
constexpr std::int64_t largest_step = 1 << 16;

/// Whether all are positive, and their product is not too large.
bool are_rates(const std::vector<std::int64_t>& values) {
  std::int64_t product = 1;
  for (const auto value : values) {
    if (value < 1 || value > largest_step / product) return false;
    product *= value;
  }
  return !values.empty();
}

/// Whether each residual block has dilations, all of them possible.
bool are_dilations(const std::vector<std::vector<std::int64_t>>& blocks) {
  return !blocks.empty() && std::ranges::all_of(blocks, [](const auto& each) {
    return !each.empty() && std::ranges::all_of(each, [](auto d) { return d >= 1 && d <= largest_step; });
  });
}

} // namespace

tts_attention tts_attention_named(const std::string& name) {
  if (name == "full_attention") return tts_attention::full_attention;
  if (name == "sliding_window") return tts_attention::sliding_window;
  if (name == "sliding_recompute") return tts_attention::sliding_recompute;
  if (name == "reindex") return tts_attention::reindex;
  throw std::runtime_error("attention_type \"" + name + "\" is not known");
}

tts_config tts_config::open(const std::filesystem::path& config_json) {
  try {
    const auto root = read_json(config_json);
    const auto& from = root.at("tts_config");
    tts_config c;
    read(from, "num_attention_heads", c.heads);
    c.kv_heads = c.heads;
    read(from, "num_key_value_heads", c.kv_heads);
    read(from, "audio_bos_token_id", c.audio_bos_token_id);
    read(from, "text_eos_token_id", c.text_eos_token_id);
    read(from, "normalize_projected_hidden", c.normalize_projected_hidden);
    read(from, "streaming_sliding_window_audio_window_size", c.token_window);
    std::string attention = "sliding_recompute";
    read(from, "attention_type", attention);
    c.attention = tts_attention_named(attention);
    if (c.heads < 1 || c.kv_heads < 1 || c.heads % c.kv_heads != 0 || c.token_window < 1)
      throw std::runtime_error("tts_config: impossible head or window counts");
    return c;
  } catch (const std::exception& error) {
    throw std::runtime_error(config_json.string() + ": " + error.what());
  }
}

flow_config flow_config::open(const std::filesystem::path& flow_yaml) {
  try {
    flow_config c;
    if (auto decoder = part(flow_yaml, "flow")["decoder"]) read(decoder, "inference_cfg_rate", c.guidance);
    return c;
  } catch (const std::exception& error) {
    throw std::runtime_error(flow_yaml.string() + ": " + error.what());
  }
}

std::int64_t hift_config::rate() const {
  return std::accumulate(upsample_rates.begin(), upsample_rates.end(), std::int64_t{1}, std::multiplies<>());
}

hift_config hift_config::open(const std::filesystem::path& config_yaml) {
  try {
    const auto from = part(config_yaml, "hift");
    hift_config c;
    read(from, "sampling_rate", c.sample_rate);
    read(from, "nsf_alpha", c.sine_amplitude);
    read(from, "nsf_sigma", c.noise_amplitude);
    read(from, "nsf_voiced_threshold", c.voiced_threshold);
    read(from, "upsample_rates", c.upsample_rates);
    read(from, "resblock_dilation_sizes", c.dilations);
    read(from, "source_resblock_dilation_sizes", c.source_dilations);
    read(from, "lrelu_slope", c.leaky_slope);
    read(from, "audio_limit", c.limit);
    if (auto transform = from["istft_params"]) {
      read(transform, "n_fft", c.fft);
      read(transform, "hop_len", c.fft_hop);
    }
    if (!are_rates(c.upsample_rates) || c.source_dilations.size() != c.upsample_rates.size() ||
        !are_dilations(c.dilations) || !are_dilations(c.source_dilations))
      throw std::runtime_error("hift: impossible rates or dilations");
    if (!cpu::overlapped_transform::takes(c.fft, c.fft_hop))
      throw std::runtime_error("hift: istft_params: n_fft is not an even multiple of hop_len, at most " +
                               std::to_string(cpu::overlapped_transform::largest_size));
    return c;
  } catch (const std::exception& error) {
    throw std::runtime_error(config_yaml.string() + ": " + error.what());
  }
}

} // namespace parley::inference::speech
