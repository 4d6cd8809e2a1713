#include "client/probe.hpp"

#include "app/command.hpp"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

namespace parley::app {
namespace {

const auto web_address = CLI::Validator(
    [](const std::string& url) {
      for (const char* scheme : {"http://", "ws://", "https://", "wss://"})
        if (url.starts_with(scheme)) return std::string();
      return "'" + url + "' does not begin with http:// or ws://";
    },
    "URL");

void add_audio(CLI::App& probe, action& chosen) {
  auto* command = probe.add_subcommand("audio", "Speak a WAV file to the server, second by second");
  auto given = std::make_shared<client::audio_probe_options>();
  command->add_option("--url", given->url, "Server, with or without /v1/realtime")->required()->check(web_address);
  command->add_option("--wav", given->wav, "What is spoken, any rate and channel count")->required();
  command->add_flag("--fast", given->fast, "Each second as soon as the one before is answered");
  command->add_flag("--legacy", given->legacy, "Speak the legacy dialect");
  command->add_option("--system", given->system_prompt, "System prompt");
  command->add_option("--force-listen-count", given->force_listen_count, "First units that are forced to listen");
  command->add_flag("--greedy", given->greedy, "Always the likeliest token");
  command->add_option("--seed", given->seed, "Same seed, same answer");
  command->add_option("--voice", given->voice, "WAV of the reference voice");
  command->callback([&chosen, given] {
    chosen = [given] { return client::probe_audio(*given, std::cout, std::cerr); };
  });
}

void add_chat(CLI::App& probe, action& chosen) {
  auto* command = probe.add_subcommand("chat", "Ask one question in text");
  auto given = std::make_shared<client::chat_probe_options>();
  auto whole = std::make_shared<bool>(false);
  command->add_option("prompt", given->prompt, "The question")->required();
  command->add_option("--url", given->url, "Server, with or without /v1/realtime")->required()->check(web_address);
  command->add_option("--system", given->system, "System prompt");
  command->add_option("--max-new-tokens", given->max_new_tokens, "Longest answer");
  command->add_flag("--greedy", given->greedy, "Always the likeliest token");
  command->add_option("--seed", given->seed, "Same seed, same answer");
  command->add_flag("--no-stream", *whole, "One whole answer instead of deltas");
  command->callback([&chosen, given, whole] {
    chosen = [given, whole] {
      given->stream = !*whole;
      return client::probe_chat(*given, std::cout, std::cerr);
    };
  });
}

} // namespace

void add_probe(CLI::App& root, action& chosen) {
  auto* command = root.add_subcommand("probe", "Talk to a running server from the command line");
  command->require_subcommand(1);
  add_audio(*command, chosen);
  add_chat(*command, chosen);
}

} // namespace parley::app
