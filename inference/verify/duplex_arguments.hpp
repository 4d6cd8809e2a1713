#pragma once

#include "inference/llm/sampling.hpp"

#include <nlohmann/json.hpp>

namespace parley::inference::verify {

/// The arguments of a recorded duplex decode (docs/model/thinker.md 5.3); absent ones keep their defaults. The sampling
/// mode is `decode_mode` in recordings of whole sessions, and `mode` in those of single draws.
inline llm::duplex_sampling duplex_sampling_of(const nlohmann::json& arguments, const char* mode_key) {
  llm::duplex_sampling o;
  o.base.greedy = arguments.value(mode_key, "sampling") == "greedy";
  o.base.temperature = arguments.value("temperature", o.base.temperature);
  o.base.top_k = arguments.value("top_k", o.base.top_k);
  o.base.top_p = arguments.value("top_p", o.base.top_p);
  o.base.repetition_penalty = arguments.value("text_repetition_penalty", o.base.repetition_penalty);
  o.base.repetition_window = arguments.value("text_repetition_window_size", o.base.repetition_window);
  o.base.length_penalty = arguments.value("length_penalty", o.base.length_penalty);
  o.listen_prob_scale = arguments.value("listen_prob_scale", o.listen_prob_scale);
  if (arguments.contains("listen_top_k") && !arguments["listen_top_k"].is_null())
    o.listen_top_k = arguments["listen_top_k"].get<int>();
  return o;
}

} // namespace parley::inference::verify
