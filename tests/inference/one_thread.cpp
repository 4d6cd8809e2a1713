#include <ATen/Parallel.h>

// Tiny tensors: a second thread only waits, and beside other tests it waits long.
[[maybe_unused]] static const bool one_thread = (at::set_num_threads(1), true);
