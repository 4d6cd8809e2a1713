#pragma once

#include <string>

namespace parley::inference {

/// One line at level info. spdlog behind a wall: LibTorch brings an fmt of its own, which the two may not share a file with.
void log_info(const std::string& line);

} // namespace parley::inference
