#pragma once

#include "actors/recording/recording_facts.hpp"
#include "actors/recording/wav_track.hpp"
#include "protocol/codec/wire_media.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace parley::actors {

/// Which side of the wire a frame came from.
enum class speaker { client, server };

/// How much to keep of a frame's sound and pictures.
enum class accepted_media {
  none,    ///< the frame was refused, or is not input: none of it is decoded
  samples, ///< sound is raw samples
  files,   ///< sound may be WAV files
};

/// The files of one recording while it grows (docs/protocol.md 13):
///   input.wav, output.wav  every sample that the server accepted or sent, once and without gaps, 16 and 24 kHz
///   events.jsonl           every event, one a line:
///                          `{"t":ms since the connection,"from":"client"|"server","event":{…}}`,
///                          sound replaced by `{"wav":file,"at":first sample,"samples":n}`, pictures by `{"file":…}`
///   frames/                accepted pictures as they came
///   meta.json              recording_facts
/// Whatever ends the process, what was written so far is complete. Every call throws std::system_error if the disk
/// fails.
class recording_folder {
public:
  /// Creates the folder `facts.folder` below `directory`, readable by its owner only.
  recording_folder(const std::filesystem::path& directory, recording_facts facts);
  ~recording_folder();
  recording_folder(const recording_folder&) = delete;
  recording_folder& operator=(const recording_folder&) = delete;

  /// Writes one event; `t_ms` is the time since the connection was accepted. For a frame that is not JSON, or that is
  /// long and was refused, only its size is written.
  void write(speaker from, double t_ms, std::string_view frame, accepted_media media);

  /// Writes the final meta.json.
  void finish(std::string state, std::string mode, std::string reason, double seconds, std::int64_t dropped);

  const recording_facts& facts() const { return facts_; }

private:
  std::string keep(speaker from, accepted_media media, protocol::media_kind kind, std::string_view content);
  std::string keep_sound(speaker from, accepted_media media, std::string_view content);
  std::string keep_picture(std::string_view content);

  const std::filesystem::path folder_;
  recording_facts facts_;
  wav_track input_;
  wav_track output_;
  int events_;
  std::size_t event_bytes_ = 0;
  std::int64_t picture_bytes_ = 0;
};

} // namespace parley::actors
