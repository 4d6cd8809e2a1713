#include <ATen/Parallel.h>

// The tensors are tiny: a second thread would only wait, and for long while other tests are running.
[[maybe_unused]] static const bool one_thread = (at::set_num_threads(1), true);
