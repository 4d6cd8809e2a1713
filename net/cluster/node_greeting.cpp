#include "net/cluster/node_greeting.hpp"

#include "actors/cluster/node_socket.hpp"

#include <algorithm>

namespace parley::net {

namespace {

constexpr std::string_view first_word = "parley-node ";

/// What both sides must agree on: `WIRE VERSION`.
std::string own_version() {
  return std::to_string(actors::node_wire) + " " PARLEY_VERSION;
}

std::string_view take_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const auto word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

} // namespace

std::string node_greeting(std::string_view words) {
  std::string block = std::string(first_word) + own_version() + " " + std::string(words);
  block.resize(node_greeting_bytes - 1, ' ');
  return block + "\n";
}

std::optional<greeted> read_node_greeting(std::string_view block) {
  if (block.size() != node_greeting_bytes || !block.starts_with(first_word) || block.back() != '\n')
    return std::nullopt;
  auto rest = block.substr(first_word.size(), block.size() - first_word.size() - 1);
  const auto wire = take_word(rest);
  const auto version = take_word(rest);
  greeted found;
  found.version = std::string(wire) + " " + std::string(version);
  found.same_version = found.version == own_version();
  const auto end = rest.find_last_not_of(' ');
  found.words = end == std::string_view::npos ? "" : std::string(rest.substr(0, end + 1));
  return found;
}

bool may_be_node_greeting(std::string_view bytes) {
  return bytes.substr(0, first_word.size()) == first_word.substr(0, std::min(bytes.size(), first_word.size()));
}

std::string describe_unknown_peer(std::string_view bytes) {
  if (bytes.starts_with("HTTP/")) return "a web server answers there; workers join at the gateway's --nodes-port";
  const bool handshake = bytes.size() >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 0x03;
  if (handshake) return "the other side speaks TLS, and nodes.cert, nodes.key and nodes.ca are not set on this one";
  return "the other side does not speak Parley's node protocol";
}

std::string version_mismatch(std::string_view theirs) {
  return "the other side is Parley " + std::string(theirs) + ", this one is " + own_version() +
         " (node protocol and version); both must be the same";
}

} // namespace parley::net
