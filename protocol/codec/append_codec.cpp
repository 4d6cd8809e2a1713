#include "protocol/codec/client_codec.hpp"
#include "protocol/codec/media_check.hpp"
#include "protocol/codec/message_codec.hpp"
#include "protocol/codec/tool_codec.hpp"
#include "protocol/delegation/delegations.hpp"
#include "protocol/json/field_reader.hpp"
#include "protocol/json/spaced.hpp"
#include "protocol/limits.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/picture.hpp"

#include <string>
#include <utility>

namespace parley::protocol {
namespace {

constexpr std::size_t max_samples = 160'000;

/// `contents` as upstream's next protocol has it: a list of texts.
std::string read_contents(field_reader& in, const field& from, std::size_t most_bytes) {
  std::string out;
  if (!from.at.is(json::kind::array)) {
    in.fail(error_code::invalid_payload, from.path, "not an array");
    return out;
  }
  const auto all = json::elements(from.at, max_context_messages + 1);
  if (all.empty() || all.size() > max_context_messages)
    in.fail(error_code::invalid_payload, from.path, "not 1 to " + std::to_string(max_context_messages) + " texts");
  for (std::size_t i = 0; i < all.size() && !in.failed(); ++i) {
    const field one{all[i], from.path + "[" + std::to_string(i) + "]"};
    std::string scratch;
    if (in.required_object(one); in.failed()) return out;
    const auto kind = in.require(one, {"kind", "type"});
    if (in.failed()) return out;
    if (in.required_text(kind, scratch) != "text") in.fail(error_code::invalid_payload, kind.path, "not text");
    const auto text = in.short_text(in.require(one, {"text"}), most_bytes);
    if (in.failed()) return out;
    if (i > 0) out += '\n';
    out += text.value_or("");
    if (out.size() > most_bytes)
      in.fail(error_code::invalid_payload, from.path, "more than " + std::to_string(most_bytes) + " bytes of text");
  }
  return out;
}

/// input.standalone: what the user typed.
result<append_event> decode_standalone(const envelope& from) {
  field_reader in;
  append_event out;
  const field whole{json::root(from.body), {}};
  const auto contents = in.require(whole, {"contents"});
  if (in.failed()) return in.failure();
  auto text = read_contents(in, contents, max_context_bytes);
  if (!in.failed() && text.empty()) in.fail(error_code::invalid_payload, contents.path, "empty");
  out.input_id = field_reader::name(field_reader::find(whole, {"input_id"}));
  if (in.failed()) return in.failure();
  out.context.push_back({conversation::role::user, std::move(text)});
  return out;
}

void check_result(field_reader& in, std::string_view path, std::string_view result) {
  if (result.size() > max_tool_result_bytes)
    in.fail(error_code::invalid_payload, path, "more than " + std::to_string(max_tool_result_bytes) + " bytes");
}

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
  if (from.type == client_event_type::input_standalone) return decode_standalone(from);
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

result<tool_result_event> decode_tool_result(const envelope& from) {
  field_reader in;
  tool_result_event out;
  const field whole{json::root(from.body), {}};
  const auto id = in.require(whole, {"tool_call_id"});
  if (in.failed()) return in.failure();
  out.call_id = read_call_id(in, id);
  in.boolean(field_reader::find(whole, {"cancelled"}), out.cancelled);
  if (in.failed()) return in.failure();
  if (out.cancelled) return out;
  if (const auto contents = field_reader::find(whole, {"contents"}); contents.at.given()) {
    out.result = read_contents(in, contents, max_tool_result_bytes);
  } else {
    const auto content = json::member(whole.at, "content");
    if (!content.present()) in.require(whole, {"content"}); // says what is wrong
    constexpr std::size_t longest_escape = 6;
    if (content.raw().size() > longest_escape * max_tool_result_bytes)
      in.fail(error_code::invalid_payload, "content", "more than " + std::to_string(max_tool_result_bytes) + " bytes");
    if (in.failed()) return in.failure();
    if (content.is(json::kind::string))
      out.result = json::unescape(content);
    else
      json::append_spaced(content, out.result);
    check_result(in, "content", out.result);
  }
  if (in.failed()) return in.failure();
  return out;
}

result<tool_result_event> checked(tool_result_event from) {
  field_reader in;
  check_result(in, "content", from.result);
  if (in.failed()) return in.failure();
  return from;
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
