#pragma once

#include "actors/cluster/node_socket.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <cstddef>

namespace parley::net {

struct tunnel_limits {
  std::chrono::milliseconds silence{5000}; ///< a peer that sends no byte for that long is considered dead
  std::size_t largest_frame = 256u << 20;  ///< bytes of one message of CAF from outside
};

/// Carries bytes between a connection, plain or TLS, and the local socket that it returns, until one of them ends. CAF
/// speaks over that socket, and needs protection:
/// - It counts whole messages as signs of life, so that a large one over a slow line looks like silence. Here every byte
///   counts, and CAF's own clock is off (`configure_remoting`).
/// - It allocates what a header promises before anything of it has come (`node_frames`).
/// - It has a module of its own for TLS; in 0.17.6 it leaves OpenSSL's error queue uncleared, so that one handshake that
///   fails (a stray plain connection) makes every later operation of that thread that has to wait look like a failure.
///
/// All work is done on the stream's executor, which must be a strand or single-threaded. `connection` is moved from
/// only on success. \throws boost::system::system_error when there are no descriptors
actors::node_socket start_tunnel(stream&& connection, const tunnel_limits& limits);

} // namespace parley::net
