#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// The first exchange between two nodes: each sends a block of fixed size, `parley-node WIRE VERSION WORDS`, before
// anything else. So neither reads too far, and a foreign peer is recognised by its first bytes. Pure.
namespace parley::net {

inline constexpr std::size_t node_greeting_bytes = 256; ///< padded with spaces

/// A gateway's answer when it admits a worker.
inline constexpr std::string_view node_welcome = "welcome";

/// The block with this build's version and `words`, which are cut to fit.
std::string node_greeting(std::string_view words);

/// The contents of the other side's greeting.
struct greeted {
  bool same_version = false;
  std::string version;
  std::string words;
};

/// Parses a whole block; nothing if it is not a greeting.
std::optional<greeted> read_node_greeting(std::string_view block);

/// Whether the bytes received so far could be the beginning of a greeting.
bool may_be_node_greeting(std::string_view bytes);

/// A plain description of what the other side seems to be instead.
std::string describe_unknown_peer(std::string_view bytes);

/// The message for builds whose versions do not match.
std::string version_mismatch(std::string_view theirs);

} // namespace parley::net
