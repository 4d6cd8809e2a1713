#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// The first exchange between two nodes, before anything else may be sent: a block of fixed size each way, `parley-node
// WIRE VERSION WORDS`, so that nobody reads past it and a foreign peer is recognised by its first bytes. Pure.
namespace parley::net {

inline constexpr std::size_t node_greeting_bytes = 256; ///< padded with blanks

/// What a gateway answers when it lets a worker in.
inline constexpr std::string_view node_welcome = "welcome";

/// The block with this build's version and these words, which are cut to fit.
std::string node_greeting(std::string_view words);

/// What the other end said about itself.
struct greeted {
  bool same_version = false;
  std::string version;
  std::string words;
};

/// Parses a whole block; nothing = it is not a greeting.
std::optional<greeted> read_node_greeting(std::string_view block);

/// Whether the bytes received so far may become a greeting.
bool may_be_node_greeting(std::string_view bytes);

/// What the other end seems to be instead, in plain words.
std::string describe_unknown_peer(std::string_view bytes);

/// For builds that do not understand each other.
std::string version_mismatch(std::string_view theirs);

} // namespace parley::net
