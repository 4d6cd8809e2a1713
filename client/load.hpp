#pragma once

#include "client/load_role.hpp"
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
  std::vector<std::string> modes{"audio"}; ///< chat, audio, video: dealt in turn
  int sessions = 1;
  double seconds = 30; ///< after the last one came
  double ramp = -1;    ///< seconds over which they come; negative = 100 a second
  bool mixed_dialects = false;
  load_habits habits{};
  std::vector<std::string> wavs{};                                      ///< what is spoken; at least one but in chat
  std::vector<std::string> prompts{"Tell me something about the sea."}; ///< what is asked in chat
  std::string picture{};   ///< image file that video sends with each second; empty = none
  int max_new_tokens = 64; ///< of a chat answer
  std::uint64_t seed = 1;  ///< of all chance
  int threads = 0;         ///< 0 = one a core
  std::string json{};      ///< file for the figures; empty = none
  std::string plot{};      ///< file for an SVG image of the latencies; empty = none
};

/// Prints a line a second on `err` while it runs and the figures on `out`. Returns 0 when the run was completed,
/// whatever the figures, 1 when no session came about or a file could not be written, 2 for wrong options: one line on
/// `err` says which.
int load(const load_options& options, std::ostream& out, std::ostream& err);

} // namespace parley::client
