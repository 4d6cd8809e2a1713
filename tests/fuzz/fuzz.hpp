#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// A fuzz target is a file with one function `fuzz(bytes)`. With libFuzzer (preset `fuzz`) it runs for minutes; in every
// other preset replay.cpp runs the kept corpus and seeded mutations of it.
namespace parley::test {

/// Must return for any bytes and stay within its bounds; a failure ends the program.
void fuzz(std::string_view bytes);

/// A condition that must hold; the fuzzer keeps the input that broke it.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: this does not hold: %s\n", what);
  std::abort();
}

} // namespace parley::test
