#include <ATen/Parallel.h>

// Tiny tensors: a second thread would only wait, and with other tests running it would wait long.
[[maybe_unused]] static const bool one_thread = (at::set_num_threads(1), true);
