#include "inference/kernels/integer_upload.hpp"

#include <ATen/ATen.h>

#include <algorithm>

namespace parley::inference {

void integer_upload::send(at::Device device) {
  auto host = at::empty({std::ssize(numbers_)}, at::TensorOptions(at::kInt).pinned_memory(device.is_cuda()));
  std::ranges::copy(numbers_, host.mutable_data_ptr<std::int32_t>());
  sent_ = host.to(device, device.is_cuda());
}

at::Tensor integer_upload::operator[](part wanted) const {
  return sent_.narrow(0, wanted.begin, wanted.count);
}

} // namespace parley::inference
