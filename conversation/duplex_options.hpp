#pragma once

#include <cstdint>
#include <optional>

// What a client may choose for a duplex session: names, bounds and defaults are those of `config` on the wire
// (docs/protocol.md 3.1); docs/model/thinker.md 5.3 describes their effects. A new option is a member here, a line in
// the reader of the wire format (protocol/codec/duplex_config_codec.cpp), and the code that uses it.
namespace parley::conversation {

/// What happens to a KV cache that grows too long (docs/protocol.md 6.10, docs/model/thinker.md 5.6).
enum class window_mode : std::uint8_t { off, basic, context };

/// How text tokens are sampled (docs/model/thinker.md 5.3, 5.4).
struct sampling_options {
  bool greedy = false;
  double temperature = 0.7;
  int top_k = 20; ///< 0 = off
  double top_p = 0.8;
  double repetition_penalty = 1.05;
  int repetition_window = 512; ///< how many of the newest tokens the repetition penalty applies to
  double length_penalty = 1.1;

  friend bool operator==(const sampling_options&, const sampling_options&) = default;
};

struct duplex_options {
  sampling_options sampling;
  int force_listen_count = 3;
  int max_new_speak_tokens_per_chunk = 20;
  double listen_prob_scale = 1.0;
  std::optional<int> listen_top_k;
  double tts_temperature = 0.8;
  bool generate_audio = true;            ///< false: it answers with text only
  std::optional<window_mode> window;     ///< none = the server's setting, or for an engine `off`
  std::optional<int> window_high_tokens; ///< the basic window slides when the cache exceeds this …
  std::optional<int> window_low_tokens;  ///< … and shrinks the cache to this

  friend bool operator==(const duplex_options&, const duplex_options&) = default;
};

/// All members, for archives (actors/bytes/byte_archive.hpp): a new member does not compile until it is added here.
template<class A>
void fields(A& a, sampling_options& of) {
  auto& [greedy, temperature, top_k, top_p, penalty, window, length_penalty] = of;
  a(greedy, temperature, top_k, top_p, penalty, window, length_penalty);
}

template<class A>
void fields(A& a, duplex_options& of) {
  auto& [sampling, force, most, scale, listen_top_k, tts_temperature, audio, window, high, low] = of;
  a(sampling, force, most, scale, listen_top_k, tts_temperature, audio, window, high, low);
}

} // namespace parley::conversation
