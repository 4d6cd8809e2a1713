#pragma once

#include <string>

namespace parley::app {

/// A program that was built with LibTorch for CPUs may run with the one for GPUs, whose kernels are in a library that it
/// does not name. Loads that library where it is installed and this machine has NVIDIA's driver, unless `device`, as in
/// `worker.device`, is "cpu". To be called before the first use of LibTorch. No effect on a program that is linked with
/// the library.
void load_cuda_library(const std::string& device);

} // namespace parley::app
