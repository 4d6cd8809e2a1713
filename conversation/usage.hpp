#pragma once

#include <cstdint>

namespace parley::conversation {

/// Tokens by kind (docs/protocol.md 4.2). Totals over the kinds are computed, not stored.
struct usage {
  std::int64_t input_text = 0;
  std::int64_t input_audio = 0;
  std::int64_t input_vision = 0;
  std::int64_t output_text = 0;
  std::int64_t output_audio = 0;

  usage& operator+=(const usage& other) {
    input_text += other.input_text;
    input_audio += other.input_audio;
    input_vision += other.input_vision;
    output_text += other.output_text;
    output_audio += other.output_audio;
    return *this;
  }
  friend bool operator==(const usage&, const usage&) = default;
};

/// All members, for archives (actors/bytes/byte_archive.hpp): a new member does not compile until it is added here.
template<class A>
void fields(A& a, usage& of) {
  auto& [in_text, in_audio, in_vision, out_text, out_audio] = of;
  a(in_text, in_audio, in_vision, out_text, out_audio);
}

} // namespace parley::conversation
