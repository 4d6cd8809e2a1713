#include "protocol/openai/shared/items.hpp"

#include "base/utf8.hpp"
#include "conversation/image_format.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/media/picture.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace parley::protocol::openai {
namespace {

constexpr std::array<std::string_view, 5> part_names{"input_text", "input_audio", "input_image", "output_text",
                                                     "output_audio"};
constexpr std::array<std::string_view, 3> status_names{"in_progress", "completed", "incomplete"};
constexpr std::array<std::string_view, 3> kind_names{"message", "function_call", "function_call_output"};
constexpr std::array<std::string_view, 3> role_names{"system", "user", "assistant"};
constexpr std::size_t most_parts = 64;
constexpr std::size_t most_id_bytes = 64;
constexpr std::size_t least_counted = 4u << 10;      ///< of text
constexpr std::size_t most_event_base64 = 32u << 20; ///< five minutes of PCM16 at 24 kHz are 18 MiB

template<class Enum, std::size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

std::string encode_part(const item_part& part) {
  std::string out;
  json::object_writer write(out);
  write.text("type", part_names[static_cast<std::size_t>(part.type)]);
  switch (part.type) {
  case item_part::kind::input_text:
  case item_part::kind::output_text: write.text("text", part.text); break;
  case item_part::kind::input_audio:
  case item_part::kind::output_audio:
    part.has_transcript ? write.text("transcript", part.text) : write.json("transcript", "null");
    break;
  case item_part::kind::input_image: write.text("detail", part.low_detail ? "low" : "auto"); break;
  }
  write.close();
  return out;
}

/// What an item says, judged by its length before it is copied. Absent: if the field is.
std::optional<std::string> read_words(field_set& from, std::string_view name, event_sound& event) {
  if (auto why = event.charge_text(from.at(name).raw().size(), from.path_of(name))) {
    from.fail(*std::move(why));
    return std::nullopt;
  }
  return from.text(name, most_event_text);
}

std::string required_words(field_set& from, std::string_view name, event_sound& event) {
  return from.require(name).given() ? read_words(from, name, event).value_or("") : std::string();
}

compact_sound read_sound(field_set& part, const speech::sound_format& coding, event_sound& sound) {
  const auto audio = part.borrowed("audio", most_event_base64);
  if (!audio || part.failed()) return nullptr;
  if (auto why = sound.charge(audio->view(), coding, part.path_of("audio"))) {
    part.fail(*std::move(why));
    return nullptr;
  }
  const auto seconds = speech::seconds_of(audio->view(), coding);
  auto held = sound.keep(static_cast<std::size_t>(seconds * speech::model_input_rate * sizeof(std::int16_t)),
                         part.path_of("audio"));
  if (!held) {
    part.fail(held.error());
    return nullptr;
  }
  std::vector<float> samples;
  speech::sound_decoder decode(coding);
  if (const auto read = decode.feed(audio->view(), samples); !read) {
    part.fail(invalid_value(part.path_of("audio"), read.error()).value());
    return nullptr;
  }
  std::vector<std::int16_t> kept;
  kept.reserve(samples.size());
  append_compact(samples, kept);
  return counted(std::move(kept), *std::move(held));
}

item_part read_part(field_set part, const speech::sound_format& coding, event_sound& sound) {
  item_part out;
  auto type = part.required_text("type");
  if (type == "text") type = "input_text";
  if (type == "audio") type = "output_audio";
  const auto kind = named<item_part::kind>(part_names, type);
  if (!kind) {
    part.refuse_value("type", "'" + type.substr(0, most_id_bytes) + "' is no content that this server takes.");
    return out;
  }
  out.type = *kind;
  switch (*kind) {
  case item_part::kind::input_text:
  case item_part::kind::output_text: out.text = required_words(part, "text", sound); break;
  case item_part::kind::input_audio: out.sound = read_sound(part, coding, sound); [[fallthrough]];
  case item_part::kind::output_audio: {
    auto transcript = read_words(part, "transcript", sound);
    out.has_transcript = transcript.has_value() || *kind == item_part::kind::output_audio;
    out.text = std::move(transcript).value_or("");
    break;
  }
  case item_part::kind::input_image: {
    out.low_detail = part.text("detail").value_or("") == "low";
    // The server shows pictures without their URL. One that comes back like that is known to have been there.
    if (!part.has("image_url") && part.at("detail").given()) break;
    const auto url = part.require("image_url");
    if (part.failed()) break;
    if (!url.is(json::kind::string) || !url.raw().starts_with("data:")) {
      part.refuse_value("image_url", "only data URLs are supported: this server fetches nothing.");
      break;
    }
    auto held = sound.keep(url.raw().size(), part.path_of("image_url"));
    if (!held) {
      part.fail(held.error());
      break;
    }
    const auto text = part.borrowed("image_url", most_event_base64);
    if (!text) break;
    const auto file = decode_image(text->view(), part.path_of("image_url"), picture_kinds::jpeg_png_webp);
    if (!file) {
      part.fail({"invalid_value", file.error().message, part.path_of("image_url")});
      break;
    }
    out.picture = counted(std::string(**file), *std::move(held));
    out.picture_bytes = url.raw().size();
    out.is_jpeg = conversation::format_of(**file) == conversation::image_format::jpeg;
    break;
  }
  }
  return out;
}

void read_message(field_set& from, const speech::sound_format& coding, event_sound& sound, item& into) {
  auto role = from.required_text("role");
  if (role == "developer") role = "system";
  const auto known = named<item_role>(role_names, role);
  if (!known) return from.refuse_value("role", "it must be system, user or assistant.");
  into.role = *known;
  const auto content = from.require("content");
  if (from.failed()) return;
  if (!content.is(json::kind::array)) return from.refuse_value("content", "it must be a list.");
  const auto parts = json::elements(content, most_parts + 1);
  if (parts.size() > most_parts) return from.refuse_value("content", "it has more than 64 parts.");
  std::optional<fault> wrong;
  for (const auto& each : parts) {
    into.content.push_back(read_part({each, from.path_of("content"), wrong}, coding, sound));
    if (wrong) break;
    auto& part = into.content.back();
    if (into.role == item_role::assistant && part.type == item_part::kind::input_text)
      part.type = item_part::kind::output_text;
  }
  if (wrong) from.fail(std::move(*wrong));
}

std::size_t sound_of(const item& one) {
  std::size_t samples = 0;
  for (const auto& part : one.content) samples += part.sound ? part.sound->size() : 0;
  return samples;
}

std::size_t pictures_of(const item& one) {
  std::size_t bytes = 0;
  for (const auto& part : one.content) bytes += part.picture ? part.picture_bytes : 0;
  return bytes;
}

} // namespace

std::size_t text_of(const item& one) {
  std::size_t bytes = one.payload.size() + one.name.size() + one.call_id.size();
  for (const auto& part : one.content) bytes += part.text.size();
  return bytes;
}

bool is_camera_view(const item& one) {
  return one.kind == item_kind::message && one.role == item_role::user && !one.content.empty() &&
         std::all_of(one.content.begin(), one.content.end(),
                     [](const item_part& part) { return part.type == item_part::kind::input_image && part.is_jpeg; });
}

std::string encode_item(const item& of) {
  std::string out;
  json::object_writer write(out);
  write.text("id", of.id);
  write.text("object", "realtime.item");
  write.text("type", kind_names[static_cast<std::size_t>(of.kind)]);
  write.text("status", status_names[static_cast<std::size_t>(of.status)]);
  switch (of.kind) {
  case item_kind::message: {
    write.text("role", role_names[static_cast<std::size_t>(of.role)]);
    std::string parts = "[";
    for (const auto& part : of.content) {
      if (parts.size() > 1) parts += ',';
      parts += encode_part(part);
    }
    write.json("content", parts + "]");
    break;
  }
  case item_kind::function_call:
    write.text("name", of.name);
    write.text("call_id", of.call_id);
    write.text("arguments", of.payload);
    break;
  case item_kind::function_call_output:
    write.text("call_id", of.call_id);
    write.text("output", of.payload);
    break;
  }
  write.close();
  return out;
}

item read_item(field_set& from, const speech::sound_format& coding, event_sound& sound) {
  item out;
  out.id = from.text("id", most_id_bytes).value_or("");
  const auto type = from.required_text("type");
  const auto kind = named<item_kind>(kind_names, type);
  if (!kind) {
    from.refuse_value("type", "'" + type.substr(0, most_id_bytes) + "' is no item that this server takes.");
    return out;
  }
  out.kind = *kind;
  switch (*kind) {
  case item_kind::message: read_message(from, coding, sound, out); break;
  case item_kind::function_call:
    out.name = from.required_text("name");
    out.call_id = from.text("call_id").value_or("");
    out.payload = required_words(from, "arguments", sound);
    break;
  case item_kind::function_call_output:
    out.call_id = from.required_text("call_id");
    out.payload = required_words(from, "output", sound);
    break;
  }
  if (const auto bytes = text_of(out); bytes > least_counted) {
    if (auto held = sound.keep(bytes, from.path_of("content")))
      out.held = std::make_shared<const base::byte_budget::share>(*std::move(held));
    else
      from.fail(held.error());
  }
  return out;
}

fault unknown_call(std::string_view call_id, std::string_view path) {
  return {"invalid_tool_call_id",
          "Tool call ID '" + std::string(call_id.substr(0, most_id_bytes)) + "' not found in conversation.",
          std::string(path)};
}

item_list::slots::iterator item_list::locate(std::string_view id) {
  // The newest first: most of what is asked for is near the end.
  const auto found =
      std::find_if(items_.rbegin(), items_.rend(), [&](const slot& each) { return each.held->id == id; });
  return found == items_.rend() ? items_.end() : std::prev(found.base());
}

const item* item_list::find(std::string_view id) const {
  const auto found =
      std::find_if(items_.rbegin(), items_.rend(), [&](const slot& each) { return each.held->id == id; });
  return found == items_.rend() ? nullptr : found->held.get();
}

bool item_list::has_call(std::string_view call_id) const {
  return std::any_of(items_.rbegin(), items_.rend(), [&](const slot& each) {
    return each.held->kind == item_kind::function_call && each.held->call_id == call_id;
  });
}

std::vector<kept_item> item_list::snapshot() {
  std::vector<kept_item> out;
  out.reserve(items_.size());
  for (auto& each : items_) {
    each.shared = true;
    out.push_back(each.held);
  }
  return out;
}

kept_item item_list::share(std::string_view id) {
  const auto at = locate(id);
  if (at == items_.end()) return nullptr;
  at->shared = true;
  return at->held;
}

item& item_list::own(slot& of) {
  if (std::exchange(of.shared, false)) of.held = std::make_shared<item>(*of.held);
  return *of.held;
}

void item_list::count(const item& one) {
  text_bytes_ += text_of(one);
  sound_samples_ += sound_of(one);
  picture_bytes_ += pictures_of(one);
}

void item_list::uncount(const item& one) {
  text_bytes_ -= text_of(one);
  sound_samples_ -= sound_of(one);
  picture_bytes_ -= pictures_of(one);
}

std::optional<fault> item_list::judge(const item& one) const {
  if (items_.size() < limits_.items && text_bytes_ + text_of(one) <= limits_.text_bytes) return std::nullopt;
  return fault{"conversation_too_long", "The conversation is full: delete items first.", "item"};
}

result<std::string> item_list::insert(item one, const std::optional<std::string>& previous) {
  if (find(one.id) != nullptr)
    return refuse("item_create_duplicate_item_id",
                  "Error adding item: an item with ID '" + one.id + "' already exists in the conversation.", "item.id");
  auto at = items_.end();
  if (previous && *previous == "root") {
    at = items_.begin();
  } else if (previous) {
    at = locate(*previous);
    if (at == items_.end())
      return refuse("item_create_invalid_previous_item_id",
                    "Error adding item: the previous item with ID '" + previous->substr(0, most_id_bytes) +
                        "' does not exist.",
                    "previous_item_id");
    ++at;
  }
  if (auto why = judge(one)) return tl::unexpected(*std::move(why));
  std::string before = at == items_.begin() ? std::string() : std::prev(at)->held->id;
  count(one);
  items_.insert(at, {std::make_shared<item>(std::move(one))});
  forget_old_media();
  return before;
}

void item_list::append(item one) {
  count(one);
  items_.push_back({std::make_shared<item>(std::move(one))});
  make_room();
}

bool item_list::erase(std::string_view id) {
  const auto at = locate(id);
  if (at == items_.end()) return false;
  uncount(*at->held);
  items_.erase(at);
  return true;
}

/// Forgets the oldest items, but never the last one.
void item_list::make_room() {
  while (items_.size() > 1 && (items_.size() > limits_.items || text_bytes_ > limits_.text_bytes)) {
    uncount(*items_.front().held);
    items_.pop_front();
  }
  forget_old_media();
}

void item_list::forget_old_media() {
  for (auto at = items_.begin(); at != items_.end(); ++at) {
    const bool much_sound = sound_samples_ > limits_.sound_samples, much_seen = picture_bytes_ > limits_.picture_bytes;
    if (!much_sound && !much_seen) return;
    const auto goes = [&](const item_part& part) { return (much_sound && part.sound) || (much_seen && part.picture); };
    if (std::none_of(at->held->content.begin(), at->held->content.end(), goes)) continue;
    auto& one = own(*at);
    uncount(one);
    // Its first parts first.
    for (auto& part : one.content) {
      if (part.sound && sound_samples_ + sound_of(one) > limits_.sound_samples) part.sound = nullptr;
      if (part.picture && picture_bytes_ + pictures_of(one) > limits_.picture_bytes) part.picture = nullptr;
    }
    count(one);
  }
}

std::string cut_words(const std::string& text, double share) {
  const auto size = static_cast<std::size_t>(static_cast<double>(text.size()) * std::clamp(share, 0.0, 1.0));
  const auto kept = base::utf8::truncate(text, size);
  if (kept.size() == text.size() || text[kept.size()] == ' ') return std::string(kept);
  return std::string(kept.substr(0, kept.rfind(' ')));
}

} // namespace parley::protocol::openai
