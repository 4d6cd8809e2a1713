#pragma once

#include <cstdint>

namespace parley::actors {

/// 64 bits from the kernel's cryptographic source, for ids that must not be guessable. Thread-safe. Throws
/// std::system_error if the kernel provides none.
std::uint64_t secure_random();

} // namespace parley::actors
