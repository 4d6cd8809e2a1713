#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/media_check.hpp"
#include "protocol/codec/message_codec.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/picture.hpp"

namespace parley::protocol {
namespace {

constexpr std::size_t max_samples = 160'000;

bool has_audio(const field& input) {
  return field_reader::find(input, {"audio", "audio_base64", "audio_data"}).at.given();
}

field find_audio(field_reader& in, const field& input) {
  auto audio = in.require(input, {"audio", "audio_base64", "audio_data"});
  if (!audio.at.is(json::kind::object)) return audio;
  return in.require(audio, {"data", "base64"});
}

bool refuses_frames(field_reader& in, std::string_view path, std::size_t count) {
  if (count <= max_frames) return false;
  in.fail(error_code::invalid_payload, path, "more than " + std::to_string(max_frames) + " frames");
  return true;
}

std::vector<image_file> read_frames(field_reader& in, const field& from) {
  std::vector<image_file> out;
  if (!from.at.given()) return out;
  if (!from.at.is(json::kind::array)) {
    in.fail(error_code::invalid_payload, from.path, "not an array");
    return out;
  }
  auto frames = json::elements(from.at, max_frames + 1);
  if (refuses_frames(in, from.path, frames.size())) return out;
  for (std::size_t i = 0; i < frames.size() && !in.failed(); ++i) {
    const auto frame = field_reader::element(from, frames[i], i);
    std::string scratch;
    auto text = in.required_text(frame, scratch);
    if (!in.failed()) out.push_back(in.take(decode_image(text, frame.path)));
  }
  return out;
}

} // namespace

result<append_event> decode_append(const envelope& from, mode kind, std::size_t min_legacy_samples) {
  field_reader in;
  append_event out;
  auto legacy = from.type == client_event_type::input_audio_buffer_append;
  field input{json::root(from.body), {}};
  if (!legacy) {
    input = in.require(input, {"input", "payload", "data"});
    if (in.failed()) return in.failure();
    input = in.required_object(std::move(input));
    if (in.failed()) return in.failure();
    auto hints = in.object(field_reader::find(input, {"hints"}));
    bool hinted = false;
    in.boolean(field_reader::find(hints, {"force_listen"}), hinted);
    in.boolean(field_reader::find(input, {"force_listen"}), out.force_listen);
    out.force_listen = out.force_listen || hinted;
    in.integer(field_reader::either(field_reader::find(input, {"max_slice_nums"}),
                                    field_reader::find(hints, {"max_slice_nums"})),
               1, max_slices, out.max_slice_nums);
    out.context = read_context(in, field_reader::find(input, {"context"}));
  } else {
    in.boolean(field_reader::find(input, {"force_listen"}), out.force_listen);
    in.integer(field_reader::find(input, {"max_slice_nums"}), 1, max_slices, out.max_slice_nums);
  }

  out.input_id = field_reader::name(field_reader::find(input, {"input_id"}));
  if (in.failed()) return in.failure();
  if (!out.context.empty() && !has_audio(input)) return out;
  auto audio = find_audio(in, input);
  if (in.failed()) return in.failure();
  std::string scratch;
  auto text = in.required_text(audio, scratch);
  if (in.failed()) return in.failure();
  out.samples = in.take(decode_samples(text, {legacy ? min_legacy_samples : 1, max_samples}, audio.path));
  if (kind == mode::video && !in.failed())
    out.frames = read_frames(in, field_reader::find(input, {"video_frames", "frame_base64_list", "frames"}));
  if (in.failed()) return in.failure();
  return out;
}

result<append_event> checked(append_event from, mode kind) {
  field_reader in;
  if (from.max_slice_nums) in.check_integer("input.max_slice_nums", 1, max_slices, *from.max_slice_nums);
  check_context(in, "input.context", from.context);
  if (!from.samples && from.context.empty()) in.fail(error_code::missing_field, "input.audio", "required");
  check_sound(in, "input.audio", from.samples, sample_range{1, max_samples});
  if (kind != mode::video || !from.samples) from.frames.clear();
  if (!refuses_frames(in, "input.video_frames", from.frames.size()))
    for (std::size_t i = 0; i < from.frames.size() && !in.failed(); ++i)
      check_image(in, "input.video_frames[" + std::to_string(i) + "]", from.frames[i], picture_kinds::jpeg);
  if (in.failed()) return in.failure();
  from.samples = clamped(std::move(from.samples));
  return from;
}

} // namespace parley::protocol
