#pragma once

#include <cstddef>

// File descriptors, of which a process has a limited number.
namespace parley::net {

/// Raises the soft limit of this process as far as the hard limit allows.
void raise_descriptor_limit();

/// The soft limit.
std::size_t descriptor_limit();

/// How many of the wanted connections a process with that many descriptors should accept: a quarter is reserved for
/// files, links between nodes and libraries. Pure.
std::size_t connections_within(std::size_t wanted, std::size_t descriptors);

} // namespace parley::net
