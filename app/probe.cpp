#include "client/probe.hpp"

#include "app/commands.hpp"

#include <iostream>
#include <memory>

namespace parley::app {

namespace {

/// Which server to talk to, and the credentials for it.
template<class Options>
void add_server(CLI::App& probe, Options& options) {
  probe
      .add_option("--url", options.url,
                  "http(s) or ws(s), with or without /v1/realtime; several, with commas, of one cluster")
      ->required();
  probe.add_option("--key", options.key, "API key");
  probe.add_option("--ca", options.ca_file, "PEM file of the certificates to trust, instead of the system's");
}

/// Flags that the audio and video probes share.
void add_spoken(CLI::App* sub, const std::shared_ptr<client::audio_probe_options>& options) {
  add_server(*sub, *options);
  sub->add_option("--wav", options->wav,
                  "Sound file to speak: WAV, MP3, Ogg, FLAC or AIFF, any rate and channel count");
  sub->add_option("--listen", options->listen, "Seconds of silence after the sound, for the answer")
      ->check(CLI::Range(0, 600));
  sub->add_flag("--fast", options->fast, "Send each second as soon as the previous one is answered");
  sub->add_flag("--legacy", options->legacy, "The legacy dialect");
  sub->add_option("--system", options->system_prompt, "Instructions to the model");
  sub->add_option("--force-listen-count", options->force_listen_count, "Number of steps at the start that only listen");
  sub->add_flag("--greedy", options->greedy, "Choose the likeliest token instead of sampling");
  sub->add_option("--seed", options->seed, "Same seed, same answer");
  sub->add_option("--voice", options->voice, "WAV of the reference voice");
  sub->add_option("--save", options->save, "WAV file for what is heard, at its time");
}

void add_audio(CLI::App& probe, job& chosen) {
  auto* sub = probe.add_subcommand("audio", "Speaks a sound file to the model and prints its decisions");
  const auto options = std::make_shared<client::audio_probe_options>();
  add_spoken(sub, options);
  sub->callback([options, &chosen] { chosen = [options] { return probe_audio(*options, std::cout, std::cerr); }; });
}

void add_video(CLI::App& probe, job& chosen) {
  auto* sub = probe.add_subcommand("video", "The same with a picture every second");
  const auto options = std::make_shared<client::video_probe_options>();
  add_spoken(sub, options);
  sub->add_option("--frames", options->frames, "Folder of JPEG files, shown one per second, by name");
  sub->add_option("--video", options->video, "A video file instead of --frames and --wav; needs ffmpeg");
  sub->callback([options, &chosen] { chosen = [options] { return probe_video(*options, std::cout, std::cerr); }; });
}

void add_chat(CLI::App& probe, job& chosen) {
  auto* sub = probe.add_subcommand("chat", "Asks the model something and prints its answer as it comes");
  const auto options = std::make_shared<client::chat_probe_options>();
  const auto whole = std::make_shared<bool>(false);
  sub->add_option("prompt", options->prompt, "What is asked")->required();
  add_server(*sub, *options);
  sub->add_option("--image", options->images, "JPEG, PNG or WebP file to send with it; may be repeated")
      ->allow_extra_args(false);
  sub->add_option("--audio", options->sounds, "Sound file to send with it; may be repeated")->allow_extra_args(false);
  sub->add_option("--system", options->system, "Instructions to the model");
  sub->add_option("--max-new-tokens", options->max_new_tokens, "Longest answer");
  sub->add_flag("--greedy", options->greedy, "Choose the likeliest token instead of sampling");
  sub->add_option("--seed", options->seed, "Same seed, same answer");
  sub->add_option("--save", options->save, "Request a spoken answer and save it as a WAV file");
  sub->add_flag("--no-stream", *whole, "Request one whole answer instead of deltas");
  sub->callback([options, whole, &chosen] {
    chosen = [options, whole] {
      options->stream = !*whole;
      return probe_chat(*options, std::cout, std::cerr);
    };
  });
}

} // namespace

void add_probe(CLI::App& app, job& chosen) {
  auto* probe = app.add_subcommand("probe", "Runs one session on a server and prints its events");
  probe->require_subcommand(1);
  add_audio(*probe, chosen);
  add_video(*probe, chosen);
  add_chat(*probe, chosen);
}

} // namespace parley::app
