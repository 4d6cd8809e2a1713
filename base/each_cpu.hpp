#pragma once

// For functions made of plain loops, which the compiler turns into vector instructions: it compiles them once for each
// generation of processors, and the loader picks a version when the program starts. So the order in which floats are
// summed depends on the vector width.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define PARLEY_FOR_EACH_CPU __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define PARLEY_FOR_EACH_CPU
#endif
/// For functions called by such a function: without inlining they would be compiled for the oldest processor.
#define PARLEY_INLINE inline __attribute__((always_inline))
