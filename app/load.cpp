#include "client/load.hpp"

#include "app/commands.hpp"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>

namespace parley::app {

namespace {

/// A spoken question that ships with the program, found from the working directory or next to the binary.
std::string shipped_sample() {
  namespace fs = std::filesystem;
  const fs::path name = "tests/data/question.wav";
  if (fs::exists(name)) return name;
  std::error_code ignored;
  auto folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (auto levels = 0; levels < 4 && !folder.empty(); ++levels, folder = folder.parent_path()) {
    if (fs::exists(folder / name)) return folder / name;
    if (fs::exists(folder / "share/parley/question.wav")) return folder / "share/parley/question.wav";
  }
  throw std::runtime_error("load: the shipped sample " + name.string() + " is not there: name a file with --wav");
}

int run(client::load_options options) {
  const bool speaks =
      std::any_of(options.modes.begin(), options.modes.end(), [](auto& mode) { return mode != "chat"; });
  if (speaks && options.wavs.empty()) options.wavs.push_back(shipped_sample());
  return client::load(options, std::cout, std::cerr);
}

} // namespace

void add_load(CLI::App& app, job& chosen) {
  auto* sub = app.add_subcommand("load", "Simulates many people talking to a running server");
  const auto options = std::make_shared<client::load_options>();
  auto& habits = options->habits;
  sub->add_option("--url", options->url,
                  "http(s) or ws(s), with or without /v1/realtime; several, with commas, of one cluster")
      ->required();
  sub->add_option("--key", options->key, "API key");
  sub->add_option("--ca", options->ca_file, "PEM file of the certificates to trust, instead of the system's");
  sub->add_option("--dialect", options->dialect,
                  "parley; openai or live: what clients of OpenAI's Realtime or Live API say and hear, in audio");
  sub->add_option("--mode", options->modes, "chat, audio, video; several are assigned in turn")->delimiter(',');
  sub->add_option("--sessions", options->sessions, "How many people");
  sub->add_option("--seconds", options->seconds, "Seconds to run, once the last client has connected");
  sub->add_option("--ramp", options->ramp, "Seconds over which clients connect; default: 100 clients a second");
  sub->add_option("--wav", options->wavs,
                  "Sound file to speak: WAV, MP3, Ogg, FLAC or AIFF, any rate and channel count");
  sub->add_option("--picture", options->picture, "Image file to send with each second of video");
  sub->add_option("--prompt", options->prompts, "Question to ask in chat");
  sub->add_flag("--no-tts{false}", habits.tts, "Chat answers in text only");
  sub->add_option("--max-new-tokens", options->max_new_tokens, "Most tokens in a chat answer");
  sub->add_flag("--no-resume{false}", habits.resume, "Leave when a connection breaks instead of coming back");
  sub->add_flag("--mixed-dialects", options->mixed_dialects, "Use the legacy dialect in every other duplex session");
  sub->add_flag("--fast", habits.fast, "Send each second, or question, as soon as the previous one is answered");
  sub->add_option("--jitter", habits.jitter, "Send a second up to this many seconds early or late");
  sub->add_option("--think", habits.think, "Mean seconds between an answer and the next question");
  sub->add_option("--pause", habits.pause, "Mean seconds of silence between two recordings");
  sub->add_option("--barge-in", habits.barge_in, "Chance that a speaking second is interrupted");
  sub->add_option("--listening", habits.listening, "Share of the seconds that tell the model to listen");
  sub->add_option("--speak-tokens", habits.speak_tokens, "Most tokens of a spoken second; 0: as the server has it");
  sub->add_option("--playback-lead", habits.playback_lead, "Seconds of sound that a listener buffers before playing");
  sub->add_option("--seed", options->seed, "Same seed, same people");
  sub->add_option("--threads", options->threads, "Threads of the load generator; 0 = one per core");
  sub->add_option("--json", options->json, "File for the figures");
  sub->add_option("--plot", options->plot, "SVG file of the latencies");
  sub->callback([options, &chosen] { chosen = [options] { return run(*options); }; });
}

} // namespace parley::app
