#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace parley::net {

/// A recording and the name of its file.
struct named_voice {
  std::string name;
  std::shared_ptr<const std::vector<float>> samples; ///< 16 kHz mono
};

/// Returns the server's default voice; no samples = none (GET /api/default_ref_audio answers 404). Runs on an I/O
/// thread.
using default_voice = std::function<named_voice()>;

} // namespace parley::net
