#pragma once

#include "config/settings.hpp"

#include <chrono>
#include <cstddef>

namespace parley::net {

/// How much one connection may hold and how long it may take: section `limits` of the settings, with its defaults.
struct connection_limits {
  std::size_t duplex_message_bytes = 32u << 20; ///< a larger message: close 1009
  std::size_t chat_message_bytes = 128u << 20;
  std::size_t outbox_bytes = 8u << 20;   ///< bytes not yet written; beyond: close 1008
  std::size_t resume_bytes = 4u << 20;   ///< added for a connection that resumes a session, for events sent again
  std::size_t credit_frames = 16;        ///< frames passed to the session that it has not taken yet; then reading stops
  std::size_t credit_bytes = 4u << 20;   ///< the same in bytes; one frame may exceed it
  std::size_t header_bytes = 16u << 10;  ///< HTTP request line and headers; beyond: 431
  std::size_t body_bytes = 64u << 10;    ///< HTTP request body; beyond: 413
  std::size_t received_bytes = 1u << 30; ///< of large messages and bodies that nobody has taken yet; beyond: 1013, 503
  std::size_t received_bytes_per_client = 256u << 20; ///< the same of one API key, or of one address without a key
  std::size_t waiting_bytes = std::size_t{2} << 30;   ///< small messages and frames that wait; beyond: 1013, 1008
  std::size_t waiting_bytes_per_client = 512u << 20;  ///< the same of one API key, or of one address without a key
  std::size_t answer_bytes = 64u << 20; ///< of HTTP answers that wait for their readers, all together; beyond: 503
  std::size_t answer_bytes_per_client = 16u << 20; ///< the same of one API key, or of one address without a key
  std::size_t connections = 10000; ///< open sockets; a further one takes the place of one without a session
  double slot_wait_s = 8;          ///< expected wait for a slot that is too long for OpenAI's clients: 503

  std::chrono::milliseconds handshake{10000};  ///< for one HTTP request, its answer, and the upgrade
  std::chrono::milliseconds keep_alive{30000}; ///< between two HTTP requests
  /// Ping interval, time limit for a pong, and how far a message may fall behind 16 kB/s.
  std::chrono::milliseconds ping{20000};
  std::chrono::milliseconds close{10000}; ///< to flush the outbox and finish the closing handshake
};

/// Reads the limits from the settings.
connection_limits limits_from(const config::settings& settings);

} // namespace parley::net
