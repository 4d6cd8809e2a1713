#pragma once

#include <memory>
#include <string>
#include <vector>

namespace parley::conversation {

/// Mono float32 samples in [-1, 1]: 16 kHz from the user, 24 kHz from the model. Written once, shared, never copied.
using pcm = std::shared_ptr<const std::vector<float>>;

/// The bytes of a JPEG, PNG or WebP file as the client sent it.
using image_file = std::shared_ptr<const std::string>;

} // namespace parley::conversation
