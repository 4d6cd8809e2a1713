#pragma once

#include <utility>

namespace parley::net {

/// The ping rule of docs/protocol.md 1, with one `tick` per ping interval: a pong must arrive before the next tick, and
/// a message that has begun must make progress. There are two excuses: a peer that is sending a large message cannot
/// answer in the middle of it, and while we do not read we cannot see an answer. Pure; used on one connection's strand.
class heartbeat {
public:
  enum class verdict { ping, wait, dead };

  void received() { moved_ = true; } ///< call for any bytes
  void ponged() { awaited_ = false; }
  void not_reading() { paused_ = true; } ///< call if reading was paused at any time since the last tick

  verdict tick(bool inside_message) {
    const bool moved = std::exchange(moved_, false);
    const bool paused = std::exchange(paused_, false);
    if (paused) return ping(); // if writing the ping fails, the peer is gone
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
