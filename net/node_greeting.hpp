#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

// The first words between two nodes, before anything else may be said: a block of fixed size each way,
// `parley-node WIRE VERSION WORDS`, so that nobody reads past it and a stranger is known by its first bytes. Pure.
namespace parley::net {

inline constexpr std::size_t node_greeting_bytes = 256; ///< filled up with blanks

/// What a gateway answers when it lets a worker in.
inline constexpr std::string_view node_welcome = "welcome";

/// The block with this build's version and these words, which are cut to fit.
std::string node_greeting(std::string_view words);

/// What the other end has said of itself.
struct greeted {
  bool same_version = false;
  std::string version;
  std::string words;
};

/// Of a whole block; none = it is no greeting.
std::optional<greeted> read_node_greeting(std::string_view block);

/// Whether bytes that came so far may become a greeting.
bool may_be_node_greeting(std::string_view bytes);

/// What the other end seems to be instead, in plain words.
std::string stranger(std::string_view bytes);

/// Of builds that do not understand each other.
std::string version_mismatch(std::string_view theirs);

} // namespace parley::net
