#pragma once

#include <cstdint>

namespace parley::actors {

/// 64 bits of the kernel's cryptographic source: for ids that nobody may guess. Thread-safe. Throws
/// std::system_error when the kernel gives none.
std::uint64_t secure_random();

} // namespace parley::actors
