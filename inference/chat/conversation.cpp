#include "inference/chat/conversation.hpp"

#include "inference/audio/mel_stream.hpp"
#include "inference/vision/placeholder.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

namespace parley::inference::chat {

namespace {

/// Number of bytes for the placeholders of pictures and sounds.
std::size_t marks_in(const rendered_text& text) {
  auto bytes = std::size_t{0};
  for (const auto& a : text.attachments) bytes += a.end - a.begin;
  return bytes;
}

/// No token of the published vocabulary is longer.
constexpr std::size_t longest_token_bytes = 256;

std::size_t samples_in(const message& m) {
  auto samples = std::size_t{0};
  for (const auto& item : m.content) {
    if (const auto* sound = std::get_if<audio_item>(&item)) samples += sound->samples ? sound->samples->size() : 0;
    if (const auto* video = std::get_if<video_item>(&item)) samples += video->samples ? video->samples->size() : 0;
  }
  return samples;
}

/// Reads the messages of one turn.
class reader {
public:
  /// `pictures`: all of the turn, sliced; empty if the model does not see.
  reader(const model_config& model, std::span<const vision::sliced_picture> pictures)
      : model_(model), pictures_(pictures) {}

  conversation read(const submit_turn& turn) {
    for (const auto& m : turn.messages) {
      content_ = {};
      sound_.clear();
      rows_left_ = heard_rows(samples_in(m), model_.audio.pool_step);
      first_ = true;
      separator_ = turn.omni_mode ? "" : "\n";
      for (const auto& item : m.content) std::visit([this](const auto& i) { add(i); }, item);
      talk_.messages.push_back({m.from, std::move(content_), m.calls});
      if (!sound_.empty()) talk_.clips.push_back(std::move(sound_));
    }
    if (talk_.messages.empty()) talk_.objection = "messages: empty";
    return std::move(talk_);
  }

private:
  void separate() {
    if (!std::exchange(first_, false)) content_.add(separator_);
  }

  void add(const text_item& item) {
    separate();
    content_.quote(item.text);
  }

  void add(const audio_item& item) {
    if (item.samples && !item.samples->empty())
      add_sound(*item.samples);
    else
      talk_.objection = "audio: empty";
  }

  void add(const image_item&) { add_picture(); }

  /// Every `stack_frames` pictures follow their second of sound; the remaining sound comes last.
  void add(const video_item& item) {
    std::span<const float> sound;
    if (item.samples) sound = *item.samples;
    for (auto i = std::size_t{0}; i < item.frames.size(); ++i) {
      if (!sound.empty() && i % static_cast<std::size_t>(std::max(item.stack_frames, 1)) == 0) {
        auto second = sound.first(std::min<std::size_t>(sound.size(), audio::sample_rate));
        sound = sound.subspan(second.size());
        add_sound(second);
      }
      add_picture();
    }
    if (!sound.empty()) add_sound(sound);
  }

  void add_sound(std::span<const float> samples) {
    separate();
    content_.attach(medium::audio, talk_.media.audio.size());
    // Rows are counted for each sound, but the sounds are encoded together, which may give fewer: then the last sounds
    // get fewer.
    const auto rows = std::min(heard_rows(samples.size(), model_.audio.pool_step), rows_left_);
    rows_left_ -= rows;
    talk_.media.audio.push_back(audio_placeholder(rows));
    talk_.media_rows += rows + 2;
    sound_.insert(sound_.end(), samples.begin(), samples.end());
  }

  void add_picture() {
    const auto number = talk_.media.image.size();
    if (number >= pictures_.size()) {
      talk_.objection = "images: this model does not see";
      return;
    }
    separate();
    content_.attach(medium::image, number);
    talk_.media_rows += std::ssize(pictures_[number].pieces) * (model_.vision.query_num + 2);
    talk_.media.image.push_back(
        vision::image_placeholder(pictures_[number].grid, model_.vision.query_num,
                                  model_.vision.use_image_id ? std::optional(number) : std::nullopt));
  }

  const model_config& model_;
  std::span<const vision::sliced_picture> pictures_;
  conversation talk_;
  rendered_text content_;
  std::vector<float> sound_;
  std::int64_t rows_left_ = 0; ///< rows left for the sounds of this message
  std::string_view separator_;
  bool first_ = true;
};

} // namespace

conversation read_conversation(const submit_turn& turn, const model_config& model,
                               std::span<const vision::sliced_picture> pictures) {
  return reader(model, pictures).read(turn);
}

std::vector<image_file> pictures_in(const submit_turn& turn) {
  std::vector<image_file> files;
  for (const auto& m : turn.messages)
    for (const auto& item : m.content) {
      if (const auto* image = std::get_if<image_item>(&item)) files.push_back(image->file);
      if (const auto* video = std::get_if<video_item>(&item))
        files.insert(files.end(), video->frames.begin(), video->frames.end());
    }
  return files;
}

std::int64_t least_tokens(const conversation& talk) {
  auto bytes = std::size_t{0};
  for (const auto& m : talk.messages) {
    bytes += m.content.text.size() - marks_in(m.content);
    for (const auto& call : m.calls) bytes += call.name.size() + call.arguments.size();
  }
  return talk.media_rows + static_cast<std::int64_t>(bytes / longest_token_bytes);
}

} // namespace parley::inference::chat
