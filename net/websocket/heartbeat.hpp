#pragma once

#include <utility>

namespace parley::net {

/// The ping rule of docs/protocol.md 1, with one `tick` per ping interval: a pong must arrive before the next tick.
/// There are two excuses: a peer that is sending a large message, which has a deadline of its own, cannot answer in the
/// middle of it, and while we do not read we cannot see an answer. Pure; used on one connection's strand.
class heartbeat {
public:
  enum class verdict { ping, wait, dead };

  void ponged() { awaited_ = false; }
  void not_reading() { paused_ = true; } ///< call if reading was paused at any time since the last tick

  verdict tick(bool inside_message) {
    if (std::exchange(paused_, false)) return ping(); // if writing the ping fails, the peer is gone
    if (awaited_) return inside_message ? verdict::wait : verdict::dead;
    return ping();
  }

private:
  verdict ping() {
    awaited_ = true;
    return verdict::ping;
  }

  bool awaited_ = false;
  bool paused_ = false;
};

} // namespace parley::net
