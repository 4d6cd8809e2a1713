#include "inference/kernels/packed_upload.hpp"

#include <ATen/ATen.h>

#include <cstring>
#include <stdexcept>

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

at::Tensor packed_upload::staged(bool pinned) const {
  auto host = at::empty({std::ssize(bytes_)}, at::TensorOptions(at::kByte).pinned_memory(pinned));
  if (!bytes_.empty()) std::memcpy(host.mutable_data_ptr(), bytes_.data(), bytes_.size());
  return host; // LibTorch keeps a pinned block until the stream has read it
}

void packed_upload::send(at::Device device) {
  sent_ = bytes_.empty() ? at::empty({0}, at::TensorOptions(at::kByte).device(device))
                         : staged(device.is_cuda()).to(device, device.is_cuda());
}

void packed_upload::send_again(const packed_upload& numbers) {
  if (!sent_.defined() || numbers.bytes_.size() != bytes_.size())
    throw std::invalid_argument("upload: numbers of another layout");
  if (!bytes_.empty()) sent_.copy_(numbers.staged(sent_.is_cuda()), sent_.is_cuda());
}

at::Tensor packed_upload::operator[](const part& which) const {
  const auto size = static_cast<std::int64_t>(c10::elementSize(which.dtype));
  return sent_.narrow(0, static_cast<std::int64_t>(which.begin), which.count * size).view(which.dtype);
}

} // namespace parley::inference
