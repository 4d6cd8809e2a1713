#include "inference/check/checks.hpp"
#include "inference/formats/json_file.hpp"
#include "inference/formats/model_config.hpp"
#include "inference/init/presets.hpp"
#include "inference/speech/speech_config.hpp"

#include <nlohmann/json.hpp>

namespace parley::inference::check {

namespace {

using nlohmann::json;

/// Values that concern training, other programs, or how the file was written.
bool is_of_no_interest(const std::string& pointer) {
  for (const std::string_view part : {"/architectures",
                                      "/torch_dtype",
                                      "/made_by",
                                      "/audio_tokenizer_type",
                                      "dropout",
                                      "/llm_hidden_size",
                                      "/slice_config",
                                      "/batch_vision_input",
                                      "/vision_batch_size",
                                      "/version",
                                      "/rope_theta",
                                      "/rope_scaling",
                                      "/audio_tokenizer_sample_rate",
                                      "/repetition_penalty",
                                      "/top_k",
                                      "/top_p",
                                      "/temperature",
                                      "/s3_stream",
                                      "/listen_speak_type",
                                      "/recomputed_chunks",
                                      "/window_size"})
    if (pointer.find(part) != std::string::npos) return true;
  return false;
}

/// Collects the members whose value differs from the published model's, with both values.
void compare(const json& published, const json& here, const std::string& at, std::string& differences) {
  for (const auto& [key, value] : published.items()) {
    auto pointer = at;
    (pointer += '/') += key;
    if (is_of_no_interest(pointer) || !here.is_object() || !here.contains(key)) continue;
    const auto& mine = here[key];
    if (value.is_object())
      compare(value, mine, pointer, differences);
    else if (mine != value)
      differences +=
          (differences.empty() ? "" : ", ") + pointer.substr(1) + " " + mine.dump() + " (" + value.dump() + ")";
  }
}

} // namespace

void check_config(const folders& where, findings& out) {
  json config;
  try {
    config = read_json(where.model / "config.json");
  } catch (const std::exception& e) {
    out.fault(e.what(), "fetch config.json again");
    return;
  }
  if (!config.is_object()) {
    out.fault("config.json is not an object", "fetch config.json again");
    return;
  }
  const auto problems = model_kind_problems(config);
  for (const auto& problem : problems)
    out.fault("config.json: " + problem,
              "this server runs openbmb/MiniCPM-o-4_5 and copies of it that were not changed in this");
  if (!problems.empty()) return;
  for (const auto* key : {"version", "model_type"})
    if (!config.contains(key))
      out.warn(std::string("config.json: ") + key + " is missing: that this is MiniCPM-o 4.5 is a guess", "");
  try {
    const auto sizes = model_config::open(where.model);
    if (sizes.has_tts && sizes.tts.present) speech::tts_config::open(where.model / "config.json");
  } catch (const std::exception& e) {
    out.fault(e.what(), "fetch the file again");
    return;
  }
  std::string differences;
  compare(init::find_preset("minicpm-o-4.5").config, config, "", differences);
  if (!differences.empty()) out.note("config.json: other numbers than in MiniCPM-o 4.5 (in brackets): " + differences);
  if (is_made(config)) out.note("config.json: made by " + config["made_by"].dump() + ": its answers are nonsense");
  if (weight_format_of(config).awq) out.note("the language model's matrices are stored in 4 bits (AWQ)");
  out.pass("config.json is of MiniCPM-o 4.5");
}

} // namespace parley::inference::check
