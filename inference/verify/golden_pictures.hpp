#pragma once

#include "inference/verify/golden_set.hpp"
#include "inference/vision/pieces.hpp"

namespace parley::inference::verify {

/// Draws a picture of the thinker's recordings by its formula (docs/model/thinker.md 7).
vision::picture draw_picture(golden_set& files, const std::string& name);

/// Throws std::runtime_error naming the file if it can't be read as a picture.
vision::picture read_picture(const std::filesystem::path& file);

/// A picture of the thinker's or the end-to-end recordings, sliced for the model; `max_slice_nums` null = the
/// checkpoint's own.
vision::sliced_picture cut_picture(golden_set& files, const std::string& name, const nlohmann::json& max_slice_nums);

/// The frames of a recorded unit, each cut with its own `max_slice_nums`.
std::vector<vision::sliced_picture> cut_frames(golden_set& files, const nlohmann::json& input);

} // namespace parley::inference::verify
