#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

// The probe clients (`parley probe audio|video|chat`): one session against a running server, reported line by line for
// a person.
namespace parley::client {

/// Options of `parley probe audio`.
struct audio_probe_options {
  std::string url{};     ///< ws(s):// or http(s)://, with or without /v1/realtime
  std::string key{};     ///< API key; empty = none
  std::string ca_file{}; ///< PEM: trusted certificates instead of the system's
  std::string wav{};     ///< WAV file to speak: any rate and channel count
  int listen = 0;        ///< seconds of silence after it, while waiting for the answer
  bool fast = false;     ///< send each second as soon as the previous one is answered, instead of one per second
  bool legacy = false;   ///< use the legacy dialect
  std::optional<std::string> system_prompt{};
  std::optional<int> force_listen_count{}; ///< this and the next two: current dialect only
  bool greedy = false;
  std::optional<std::uint64_t> seed{};
  std::string voice{}; ///< WAV of the reference voice; empty = none
  std::string save{};  ///< 24 kHz WAV file for what is heard, at its time; empty = none
};

/// Options of `parley probe video`.
struct video_probe_options : audio_probe_options {
  std::string frames{}; ///< folder of JPEG files, one per second, ordered by name
  std::string video{};  ///< a video that ffmpeg splits, instead of `frames` and `wav`
};

/// Options of `parley probe chat`; `url`, `key` and `ca_file` as above.
struct chat_probe_options {
  std::string url{};
  std::string key{};
  std::string ca_file{};
  std::string prompt{};
  std::vector<std::string> images{}; ///< JPEG, PNG or WebP files that the prompt is about
  std::vector<std::string> sounds{}; ///< WAV files that the prompt is about
  std::optional<std::string> system{};
  std::optional<int> max_new_tokens{};
  bool greedy = false; ///< `do_sample` false
  std::optional<std::uint64_t> seed{};
  bool stream = true; ///< print deltas as they arrive; false requests one whole answer
  std::string save{}; ///< save a spoken answer in this 24 kHz WAV file; empty = text only
};

/// All return the exit status: 0 if the session finished normally, 1 if not (one line on `err` says why), 2 if an
/// option is wrong. They block until the session is closed.
int probe_audio(const audio_probe_options& options, std::ostream& out, std::ostream& err);
int probe_video(const video_probe_options& options, std::ostream& out, std::ostream& err);
int probe_chat(const chat_probe_options& options, std::ostream& out, std::ostream& err);

} // namespace parley::client
