#pragma once

#include <cstdint>
#include <string_view>

namespace parley::actors {

/// CRC-32C (Castagnoli) of `bytes`, as in RFC 3720, appendix B.4. `before`: the result for the bytes before these.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

} // namespace parley::actors
