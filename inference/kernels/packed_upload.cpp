#include "inference/kernels/packed_upload.hpp"

#include <ATen/ATen.h>

#include <cstring>

namespace parley::inference {

namespace {

constexpr std::size_t alignment = 16; // that of the widest load of a kernel

} // namespace

packed_upload::part packed_upload::add(const void* from, std::size_t count, at::ScalarType dtype) {
  const auto begin = (bytes_.size() + alignment - 1) / alignment * alignment, size = count * c10::elementSize(dtype);
  bytes_.resize(begin + size);
  if (size > 0) std::memcpy(bytes_.data() + begin, from, size);
  return {begin, static_cast<std::int64_t>(count), dtype};
}

packed_upload::part packed_upload::add(std::span<const std::int32_t> numbers) {
  return add(numbers.data(), numbers.size(), at::kInt);
}

packed_upload::part packed_upload::add(std::span<const std::int64_t> numbers) {
  return add(numbers.data(), numbers.size(), at::kLong);
}

packed_upload::part packed_upload::add(const at::Tensor& numbers) {
  return add(numbers.const_data_ptr(), static_cast<std::size_t>(numbers.numel()), numbers.scalar_type());
}

void packed_upload::send(at::Device device) {
  auto host = at::empty({std::ssize(bytes_)}, at::TensorOptions(at::kByte).pinned_memory(device.is_cuda()));
  if (!bytes_.empty()) std::memcpy(host.mutable_data_ptr(), bytes_.data(), bytes_.size());
  // LibTorch keeps the pinned block until the stream has read it.
  sent_ = host.to(device, device.is_cuda());
}

at::Tensor packed_upload::operator[](const part& which) const {
  const auto size = static_cast<std::int64_t>(c10::elementSize(which.dtype));
  return sent_.narrow(0, static_cast<std::int64_t>(which.begin), which.count * size).view(which.dtype);
}

} // namespace parley::inference
