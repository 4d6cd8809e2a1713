#include "inference/verify/families.hpp"

namespace parley::inference::verify {

std::span<const family> families() {
  static constexpr family all[] = {
      {golden_kind::thinker, "tokenizer", replay_tokenizer},
      {golden_kind::thinker, "mel", replay_mel},
      {golden_kind::thinker, "audio_encoder", replay_audio_encoder},
      {golden_kind::thinker, "image", replay_image},
      {golden_kind::thinker, "llm", replay_llm},
      {golden_kind::thinker, "sampling", replay_sampling},
  };
  return all;
}

} // namespace parley::inference::verify
