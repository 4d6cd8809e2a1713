#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference {

/// Several small arrays that go to a device in one copy. On CUDA it is from pinned memory, so that the host does not
/// wait.
class packed_upload {
public:
  /// An array, to be asked for after `send`.
  struct part {
    std::size_t begin = 0; ///< in bytes
    std::int64_t count = 0;
    at::ScalarType dtype = at::kByte;
  };

  part add(std::span<const std::int32_t> numbers);
  part add(std::span<const std::int64_t> numbers);

  /// All numbers of a contiguous tensor on the CPU.
  part add(const at::Tensor& numbers);

  /// Copies everything. Call it once.
  void send(at::Device device);

  /// Replaces what was sent by the numbers of another one with the same layout, in the same memory. Throws
  /// std::invalid_argument for another layout's size.
  void send_again(const packed_upload& numbers);

  /// One-dimensional, on the device.
  at::Tensor operator[](const part& which) const;

private:
  at::Tensor staged(bool pinned) const;
  part add(const void* from, std::size_t count, at::ScalarType dtype);

  std::vector<std::byte> bytes_;
  at::Tensor sent_;
};

} // namespace parley::inference
