#pragma once

#include "actors/cluster/node_socket.hpp"
#include "net/stream.hpp"

#include <chrono>
#include <cstddef>

namespace parley::net {

struct tunnel_limits {
  std::chrono::milliseconds silence{5000}; ///< a peer that sends no byte for this long counts as dead
  std::size_t largest_frame = 256u << 20;  ///< limit for one CAF message from outside, in bytes
};

/// Carries bytes between a connection, plain or TLS, and the local socket that it returns, until one of them ends. CAF
/// speaks over that socket, and needs protection:
/// - CAF counts only whole messages as signs of life, so that a large one over a slow line looks like silence. Here
///   every byte counts, and CAF's own clock is off (`configure_remoting`).
/// - CAF allocates what a header promises before any of it has arrived (`node_frames`).
/// - CAF's TLS module (0.17.6) does not clear OpenSSL's error queue: after one failed handshake, such as a stray plain
///   connection, every later operation of that thread that has to wait looks like a failure.
///
/// Runs entirely on the stream's executor, which must be a strand or single-threaded. `connection` is moved from only
/// on success. \throws boost::system::system_error if no descriptors are left
actors::node_socket start_tunnel(stream&& connection, const tunnel_limits& limits);

} // namespace parley::net
