#include "actors/recording/recording_folder.hpp"

#include "base/file_writes.hpp"
#include "conversation/image_format.hpp"
#include "protocol/chat_budget.hpp"
#include "protocol/json/writer.hpp"
#include "protocol/media/base64.hpp"
#include "protocol/media/pcm.hpp"
#include "protocol/media/voice.hpp"

#include <array>
#include <cstdio>
#include <limits>
#include <unistd.h>
#include <utility>

namespace parley::actors {

namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t input_rate = 16'000;
constexpr std::uint32_t output_rate = 24'000;

/// Length limit for recording a client's frame that is not accepted input. The longest init is shorter.
constexpr std::size_t longest_refused_event = 64u << 10;

fs::path make_folder(const fs::path& folder) {
  fs::create_directories(folder / "frames");
  for (const auto& each : {folder.parent_path(), folder, folder / "frames"})
    fs::permissions(each, fs::perms::owner_all);
  return folder;
}

/// A JSON object with one number, which replaces a frame.
std::string bytes_left_out(std::string_view why, std::size_t bytes) {
  std::string out;
  protocol::json::object_writer write(out);
  write.text("left_out", why);
  write.integer("bytes", static_cast<std::int64_t>(bytes));
  write.close();
  return out;
}

std::string_view suffix_of(std::string_view picture) {
  switch (conversation::format_of(picture)) {
  case conversation::image_format::png: return ".png";
  case conversation::image_format::webp: return ".webp";
  case conversation::image_format::jpeg:
  case conversation::image_format::unknown: break;
  }
  return ".jpg";
}

} // namespace

recording_folder::recording_folder(const fs::path& directory, recording_facts facts)
    : folder_(make_folder(directory / facts.folder)), facts_(std::move(facts)),
      input_(folder_ / "input.wav", input_rate), output_(folder_ / "output.wav", output_rate),
      events_(base::make_file(folder_ / "events.jsonl")) {
  base::replace_file(folder_ / "meta.json", to_json(facts_) + "\n");
}

recording_folder::~recording_folder() {
  ::close(events_);
}

void recording_folder::write(speaker from, double t_ms, std::string_view frame, accepted_media media) {
  auto event = protocol::separate_media(
      frame, [&](protocol::media_kind kind, std::string_view content) { return keep(from, media, kind, content); });
  if (event && media == accepted_media::none && event->size() > longest_refused_event)
    event = bytes_left_out("refused", frame.size());
  std::string line;
  protocol::json::object_writer write(line);
  write.number("t", t_ms, 3);
  write.text("from", from == speaker::client ? "client" : "server");
  line += ",\"event\":";
  line += event ? *event : bytes_left_out("no JSON", frame.size());
  write.close();
  line += '\n';
  base::write_at(events_, line.data(), line.size(), event_bytes_);
  event_bytes_ += line.size();
  ++facts_.events;
  facts_.seconds = t_ms / 1000;
}

std::string recording_folder::keep(speaker from, accepted_media media, protocol::media_kind kind,
                                   std::string_view content) {
  const bool medium = kind == protocol::media_kind::sound || kind == protocol::media_kind::picture;
  if (medium && media == accepted_media::none) return bytes_left_out("refused", content.size());
  switch (kind) {
  case protocol::media_kind::sound: return keep_sound(from, media, content);
  case protocol::media_kind::picture: return keep_picture(content);
  case protocol::media_kind::voice: return bytes_left_out("voice", content.size());
  case protocol::media_kind::secret: return bytes_left_out("secret", 0);
  case protocol::media_kind::text: break;
  }
  return bytes_left_out("long text", content.size());
}

std::string recording_folder::keep_sound(speaker from, accepted_media media, std::string_view content) {
  const bool client = from == speaker::client;
  const auto samples = media == accepted_media::files
                           ? protocol::decode_sound(content, {0, protocol::max_chat_seconds}, "audio")
                           : protocol::decode_samples(content, {0, std::numeric_limits<std::size_t>::max()}, "audio");
  if (!samples) return bytes_left_out("no sound", content.size());
  auto& track = client ? input_ : output_;
  std::string out;
  protocol::json::object_writer write(out);
  write.text("wav", client ? "input.wav" : "output.wav");
  write.integer("at", static_cast<std::int64_t>(track.append(**samples)));
  write.integer("samples", static_cast<std::int64_t>((*samples)->size()));
  write.close();
  return out;
}

std::string recording_folder::keep_picture(std::string_view content) {
  const auto file = protocol::base64::decode(protocol::without_data_url(content));
  if (!file) return bytes_left_out("no picture", content.size());
  std::array<char, 24> number{};
  std::snprintf(number.data(), number.size(), "%06lld", static_cast<long long>(facts_.pictures));
  const std::string name = std::string("frames/").append(number.data()).append(suffix_of(*file));
  const int to = base::make_file(folder_ / name);
  try {
    base::write_at(to, file->data(), file->size(), 0);
  } catch (...) {
    ::close(to);
    throw;
  }
  ::close(to);
  ++facts_.pictures;
  picture_bytes_ += static_cast<std::int64_t>(file->size());
  std::string out;
  protocol::json::object_writer write(out);
  write.text("file", name);
  write.integer("bytes", static_cast<std::int64_t>(file->size()));
  write.close();
  return out;
}

void recording_folder::finish(std::string state, std::string mode, std::string reason, double seconds,
                              std::int64_t dropped) {
  facts_.state = std::move(state);
  facts_.mode = std::move(mode);
  facts_.reason = std::move(reason);
  facts_.seconds = seconds;
  facts_.dropped = dropped;
  facts_.input_samples = static_cast<std::int64_t>(input_.samples());
  facts_.output_samples = static_cast<std::int64_t>(output_.samples());
  facts_.bytes = static_cast<std::int64_t>(event_bytes_) + picture_bytes_ +
                 2 * (facts_.input_samples + facts_.output_samples) + 2 * 44;
  base::replace_file(folder_ / "meta.json", to_json(facts_) + "\n");
}

} // namespace parley::actors
