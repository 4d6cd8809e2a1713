#pragma once

#include <ATen/core/Tensor.h>

namespace parley::inference {

/// A tensor of the CPU on another device. On CUDA it goes through pinned memory, and the host does not wait; several small
/// ones go together in a `packed_upload`. On the CPU, the tensor itself.
at::Tensor upload(const at::Tensor& here, at::Device device);

/// A device's tensor on the CPU, once everything that it depends on is done. From CUDA through pinned memory, which is
/// faster. Of the CPU, the tensor itself.
at::Tensor download(const at::Tensor& there);

} // namespace parley::inference
