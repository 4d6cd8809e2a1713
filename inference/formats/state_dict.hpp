#pragma once

#include "inference/formats/tensor_map.hpp"

#include <filesystem>

namespace parley::inference::speech {

/// Reads a file written by torch.save: a plain dict or the OrderedDict of `module.state_dict()`, in the zip format of
/// torch >= 1.6, pickle protocols 2 to 4 (docs/model/talker.md 2). Never executes anything in the file: it accepts only
/// the constructors of dicts, tensors and storages, and refuses all other globals. Throws std::runtime_error naming the
/// file.
tensor_map read_state_dict(const std::filesystem::path& file);

} // namespace parley::inference::speech
