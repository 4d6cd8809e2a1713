#include "protocol/session/engine_words.hpp"

namespace parley::protocol {

conversation::command opening(mode kind, const init_event& init) {
  if (kind == mode::chat) return conversation::open_chat{.session = 0, .seed = init.seed};
  return conversation::open_duplex{0, init.system_prompt, init.config, init.voice, init.tts_voice, init.seed};
}

metrics wire_metrics(const conversation::step_metrics& of) {
  metrics to;
  to.backend = "libtorch";
  to.kv_cache_length = of.kv_cache_length;
  to.prefill_ms = of.prefill_ms;
  to.generate_ms = of.generate_ms;
  to.cost_llm_ms = of.llm_ms;
  to.n_tokens = of.n_tokens;
  if (of.n_tts_tokens > 0) {
    to.cost_tts_ms = of.tts_ms;
    to.cost_token2wav_ms = of.token2wav_ms;
    to.n_tts_tokens = of.n_tts_tokens;
  }
  if (of.vision_slices > 0) {
    to.vision_slices = of.vision_slices;
    to.vision_tokens = of.vision_tokens;
  }
  if (of.window_events > 0) to.window_events = of.window_events;
  return to;
}

} // namespace parley::protocol
