#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace parley::inference {

/// What `config.json` requires that the engine does not compute, so that results would be wrong: another model or
/// version, another activation, another kind of conditioning. One sentence each, naming the key. Empty = MiniCPM-o 4.5.
/// `config` must be an object; an absent key is fine unless the default of the class would be wrong.
std::vector<std::string> model_kind_problems(const nlohmann::json& config);

/// How the language model's matrices are stored.
struct weight_format {
  bool awq = false; ///< 4 bits in groups, with zero points
  int group_size = 128;
};

/// Reads `quantization_config`; `model_kind_problems` reports an unknown kind.
weight_format weight_format_of(const nlohmann::json& config);

/// The base of the rotary embedding: `rope_theta`, or `rope_parameters.rope_theta` as transformers 5 writes it. Throws
/// std::runtime_error if it is missing, because no default would be right.
double rope_theta_of(const nlohmann::json& config);

} // namespace parley::inference
