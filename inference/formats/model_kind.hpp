#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace parley::inference {

/// What `config.json` asks for that the engine does not compute and that would make its results wrong: another model or
/// version, another activation, another way of conditioning. One sentence each, naming the key. Empty = MiniCPM-o 4.5.
/// `config` must be an object; an absent key is fine unless the class's default would be wrong.
std::vector<std::string> model_kind_problems(const nlohmann::json& config);

/// How the language model's matrices are stored.
struct weight_format {
  bool awq = false; ///< 4 bits in groups, with zero points
  int group_size = 128;
};

/// The contents of `quantization_config`; an unreadable kind is among `model_kind_problems`.
weight_format weight_format_of(const nlohmann::json& config);

/// The base of the rotary embedding: `rope_theta`, or as transformers 5 writes it `rope_parameters.rope_theta`. Throws
/// std::runtime_error when there is none, because no default would be right.
double rope_theta_of(const nlohmann::json& config);

} // namespace parley::inference
