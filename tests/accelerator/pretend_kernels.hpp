#pragma once

#include "tests/accelerator/device_memory.hpp"

#include <ATen/core/Tensor.h>

#include <string>

// For operators that the pretend device computes by itself.
namespace parley::inference::testing {

/// Counts one kernel. Throws if the device is broken.
void count_kernel(const std::string& name);

/// The same memory as a tensor of the CPU, readable while `access` lives. A tensor of the CPU stays what it is.
at::Tensor as_host(const at::Tensor& t, memory_access& access);

/// A copy on the device.
at::Tensor to_device(const at::Tensor& host, memory_access& access);

} // namespace parley::inference::testing
