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
      {golden_kind::thinker, "duplex_", replay_duplex},
      {golden_kind::thinker, "chat", replay_chat_family},
      {golden_kind::talker, "manifest", replay_talker},
  };
  return all;
}

} // namespace parley::inference::verify
