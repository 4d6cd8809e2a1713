#pragma once

#include "protocol/json/field_reader.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/picture.hpp"
#include "protocol/media/voice.hpp"

#include <string_view>

// Sound and pictures of events that never were text, judged by the rules by which those on the wire are decoded.
namespace parley::protocol {

/// Null = there is none, which is right where sound may be absent.
inline void check_sound(field_reader& in, std::string_view path, const pcm& sound, sample_range allowed) {
  if (!sound) return;
  if (const auto why = judge_count(sound->size(), allowed)) in.fail(error_code::invalid_payload, path, *why);
}

inline void check_sound(field_reader& in, std::string_view path, const pcm& sound, seconds_range allowed) {
  check_sound(in, path, sound, samples_in(allowed));
}

inline void check_image(field_reader& in, std::string_view path, const image_file& file, picture_kinds taken) {
  const auto why = file ? judge_image(*file, taken) : "not a string";
  if (!why.empty()) in.fail(error_code::invalid_payload, path, why);
}

} // namespace parley::protocol
