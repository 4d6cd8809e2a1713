#pragma once

// What this processor has, asked once.
namespace parley::inference::cpu {

/// Vectors of 512 bits, with instructions for bytes and for narrower vectors.
bool has_avx512();

/// Also sums of four products of bytes in one instruction.
bool has_vnni();

/// Products of bfloat16 numbers, in vectors or tiles.
bool multiplies_bfloat16();

} // namespace parley::inference::cpu
