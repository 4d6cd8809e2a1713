#pragma once

#include <utility>

namespace parley::net {

/// The ping rule of PROTOCOL.md 1, one `tick` per ping interval: a pong must come before the next tick, and a message
/// once begun must move on. Whoever sends a large message cannot answer inside it, and while we do not read we cannot
/// see an answer: both are excused. Pure: of one connection's strand.
class heartbeat {
public:
  enum class verdict { ping, wait, dead };

  void received() { moved_ = true; } ///< any bytes
  void ponged() { awaited_ = false; }
  void not_reading() { paused_ = true; } ///< some of the time since the last tick

  verdict tick(bool inside_message) {
    const bool moved = std::exchange(moved_, false);
    const bool paused = std::exchange(paused_, false);
    if (paused) return ping(); // its failure would tell that the peer is gone
    if (inside_message && !moved) return verdict::dead;
    if (awaited_) return inside_message ? verdict::wait : verdict::dead;
    return ping();
  }

private:
  verdict ping() {
    awaited_ = true;
    return verdict::ping;
  }

  bool moved_ = false;
  bool awaited_ = false;
  bool paused_ = false;
};

} // namespace parley::net
