#pragma once

#include <cstddef>

// File descriptors, of which a process has only so many.
namespace parley::net {

/// Raises the soft limit of this process as far as the hard one allows.
void raise_descriptor_limit();

/// The soft limit.
std::size_t descriptor_limit();

/// How many of the wanted connections a process with so many descriptors should take: a quarter is left for files,
/// links between nodes and the libraries. Pure.
std::size_t connections_within(std::size_t wanted, std::size_t descriptors);

} // namespace parley::net
