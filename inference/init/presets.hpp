#pragma once

#include "inference/init/sound_plan.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string_view>

namespace parley::inference::init {

/// The size of a model to make.
struct preset {
  nlohmann::json config;    ///< the contents of config.json
  std::int64_t base_tokens; ///< ids below the added tokens
  std::int64_t unk_id;      ///< may be among the base tokens, as in the real vocabulary
  sound_sizes sound;        ///< of the networks in `assets`
};

/// Throws std::invalid_argument naming the known presets.
preset find_preset(std::string_view name);

} // namespace parley::inference::init
