#include "inference/kernels/transfer.hpp"

#include <ATen/ATen.h>

namespace parley::inference {

at::Tensor upload(const at::Tensor& here, at::Device device) {
  if (!device.is_cuda()) return here.to(device);
  auto pinned = at::empty(here.sizes(), here.options().pinned_memory(true));
  pinned.copy_(here);
  return pinned.to(device, true); // LibTorch keeps the pinned block until the stream has read it
}

at::Tensor download(const at::Tensor& there) {
  if (!there.is_cuda()) return there.to(at::kCPU);
  auto here = at::empty(there.sizes(), there.options().device(at::kCPU).pinned_memory(true));
  here.copy_(there);
  return here;
}

} // namespace parley::inference
