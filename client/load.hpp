#pragma once

#include "client/load_scenario.hpp"
#include "client/server_url.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace parley::client {

/// Many simulated people at once against a running server (`parley load`).
struct load_options {
  std::string url{};
  std::string key{};                       ///< API key; empty = none
  std::string ca_file{};                   ///< PEM: trusted certificates instead of the system's
  std::string dialect{"parley"};           ///< or openai or live: the Realtime or Live API of OpenAI, in audio
  std::vector<std::string> modes{"audio"}; ///< chat, audio, video: assigned to clients in turn
  int sessions = 1;
  double seconds = 30; ///< duration after the last client has connected
  double ramp = -1;    ///< seconds over which the clients connect; negative = 100 clients per second
  bool mixed_dialects = false;
  load_habits habits{};
  std::vector<std::string> wavs{};                                      ///< to be spoken; not empty, except in chat
  std::vector<std::string> prompts{"Tell me something about the sea."}; ///< questions to ask in chat
  std::string picture{};   ///< image file to send with each second of video; empty = none
  int max_new_tokens = 64; ///< for each chat answer
  std::uint64_t seed = 1;  ///< seed of all randomness
  int threads = 0;         ///< 0 = one per core
  std::string json{};      ///< file for the figures; empty = none
  std::string plot{};      ///< file for an SVG image of the latencies; empty = none
};

/// Prints one line per second on `err` while it runs, and the figures on `out`. Returns 0 if the run was completed,
/// whatever the figures; 1 if no session could be opened or a file could not be written; 2 for wrong options, which one
/// line on `err` names.
int load(const load_options& options, std::ostream& out, std::ostream& err);

} // namespace parley::client
