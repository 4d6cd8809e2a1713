#pragma once

#include "inference/kernels/packed_upload.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference {

/// Calls of one shape, launched as a whole: where asking for each kernel takes longer than running it. On CUDA a graph is
/// recorded for each shape at its second call, and launched from then on. On any other device the function is called over
/// the same memory, and in a program that was built without CUDA's headers as if there were no graphs. Not thread-safe.
class graph_cache {
public:
  /// What a shape depends on, and whatever else the function uses that may change: the address of a pool, say.
  using key = std::vector<std::int64_t>;

  /// A call's work: it reads the numbers and the inputs, which lie at the same place in each call, and memory that stays
  /// where it is as long as the key is the same. It must neither make the host wait nor copy to or from the host.
  using work = std::function<at::Tensor(const packed_upload& numbers, std::span<const at::Tensor> inputs)>;

  explicit graph_cache(std::size_t most) : most_(most) {}

  /// Calls of equal keys have numbers of equal layout, inputs of equal shapes, and do the same. `numbers` is sent here.
  /// Returns the result, which is the caller's. If the work throws, so does this, and the next call starts anew.
  at::Tensor run(const key& shape, packed_upload numbers, std::span<const at::Tensor> inputs, at::Device device,
                 const work& what);

  /// The most streams' windows that are worth a graph: more keep a device busy for longer than asking for their kernels
  /// takes, and what a graph uses between its kernels is taken from sessions for good (8 GiB for 64 windows).
  static constexpr std::int64_t most_windows = 16;

  std::size_t size() const { return graphs_.size(); }

  /// To compare with: from now on, every call on every device is made kernel by kernel.
  static void prefer_calls(bool calls);

private:
  class recorded;
  struct graph;

  std::size_t most_;
  std::uint64_t calls_ = 0;
  std::map<key, std::shared_ptr<graph>> graphs_;
};

/// The size to which a number of sequences is padded, so that there are few shapes: 1, 2, 4, 8, 16, 24, 32, 48, 64, then
/// multiples of 16.
std::int64_t padded_count(std::int64_t count);

} // namespace parley::inference
