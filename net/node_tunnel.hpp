#pragma once

#include "actors/node_door.hpp"
#include "net/stream.hpp"

namespace parley::net {

/// Carries bytes between a TLS connection and the plain socket that it gives back, until one of them ends: what speaks
/// over that socket need not know of TLS. CAF has a module of its own for TLS; in 0.17.6 it leaves OpenSSL's error
/// queue uncleared, so that one handshake that fails (a stray plain connection) makes every later operation of that
/// thread that has to wait look like a failure.
///
/// All work is done on the executor of the stream, which has to be a strand or of a single thread.
actors::node_socket start_tunnel(stream connection);

} // namespace parley::net
