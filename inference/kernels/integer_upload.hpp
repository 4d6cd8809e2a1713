#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference {

/// Integers that a device must know for one call, such as row numbers: gathered on the host from everywhere in the call,
/// then uploaded at once, because each upload costs as much as a large one.
class integer_upload {
public:
  /// Where some integers are.
  struct part {
    std::int64_t begin = 0, count = 0;
  };

  template<std::integral Number>
  part add(std::span<const Number> numbers) {
    const part added{std::ssize(numbers_), std::ssize(numbers)};
    for (const auto number : numbers) numbers_.push_back(static_cast<std::int32_t>(number));
    return added;
  }

  template<std::integral Number>
  part add(const std::vector<Number>& numbers) {
    return add(std::span(numbers));
  }

  /// After all `add`. Does not wait for a GPU.
  void send(at::Device device);

  /// int32 [count] on the device.
  at::Tensor operator[](part wanted) const;

private:
  std::vector<std::int32_t> numbers_;
  at::Tensor sent_;
};

} // namespace parley::inference
