#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

// A fuzz target is a file with one `fuzz(bytes)`. Built with libFuzzer (preset `fuzz`) it is searched for minutes; in every
// other preset replay.cpp runs the kept corpus and seeded changes of it.
namespace parley::test {

/// Whatever the bytes: returns, within its bounds, or the program ends.
void fuzz(std::string_view bytes);

/// What has to hold; the fuzzer keeps the input that broke it.
inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: this does not hold: %s\n", what);
  std::abort();
}

} // namespace parley::test
