#include "inference/vocoder/row_pool.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace parley::inference::speech {

struct row_pool::store {
  std::vector<at::Tensor> parts; ///< [depth, rows, …]
  std::int64_t spare = 0;
  std::map<std::int64_t, std::int64_t> free; ///< first row → rows; neighbours are joined
  std::int64_t rows = 0;

  std::int64_t free_rows() const {
    std::int64_t sum = 0;
    for (const auto& [first, count] : free) sum += count;
    return sum;
  }

  /// The first free row before `count` others, which are taken.
  std::int64_t take(std::int64_t count) {
    const auto enough = [&](const auto& gap) { return gap.second >= count; };
    auto gap = std::ranges::find_if(free, enough);
    if (gap == free.end()) {
      grow(count);
      gap = std::ranges::find_if(free, enough);
    }
    const auto [first, size] = *gap;
    free.erase(gap);
    if (size > count) free.emplace(first + count, size - count);
    return first;
  }

  void give_back(std::int64_t first, std::int64_t count) {
    auto after = free.lower_bound(first);
    if (after != free.end() && after->first == first + count) {
      count += after->second;
      after = free.erase(after);
    }
    if (after != free.begin())
      if (const auto before = std::prev(after); before->first + before->second == first) {
        before->second += count;
        return;
      }
    free.emplace(first, count);
  }

  /// By a little more than is needed, because all rows are copied. One tensor after another, so that little is held
  /// twice.
  void grow(std::int64_t needed) {
    constexpr std::int64_t share = 16;
    const auto more = std::max(needed, rows / share);
    for (auto& part : parts) {
      if (part.size(1) >= rows + more) continue; // by a call that ran out of memory later
      auto sizes = part.sizes().vec();
      sizes[1] = rows + more;
      auto larger = at::empty(sizes, part.options());
      if (rows > 0) larger.narrow(1, 0, rows).copy_(part.narrow(1, 0, rows));
      part = std::move(larger);
    }
    give_back(rows, more);
    rows += more;
  }
};

row_pool::region::region(std::shared_ptr<store> in, std::int64_t first, std::int64_t count)
    : store_(std::move(in)), first_(first), count_(count) {}

row_pool::region::~region() {
  store_->give_back(first_, count_);
}

row_pool::row_pool(std::span<const std::int64_t> depths, at::IntArrayRef row, const at::TensorOptions& options,
                   std::int64_t spare)
    : store_(std::make_shared<store>()) {
  for (const auto depth : depths) {
    std::vector<std::int64_t> sizes{depth, 0};
    sizes.insert(sizes.end(), row.begin(), row.end());
    store_->parts.push_back(at::empty(sizes, options));
  }
  store_->spare = spare;
}

std::shared_ptr<const row_pool::region> row_pool::take(std::int64_t count) const {
  return std::make_shared<const region>(store_, store_->take(count), count);
}

void row_pool::reserve(std::int64_t count) const {
  if (const auto missing = count - store_->free_rows(); missing > 0) store_->grow(missing);
}

const at::Tensor& row_pool::part(std::size_t n) const {
  return store_->parts.at(n);
}

std::size_t row_pool::parts() const {
  return store_->parts.size();
}

std::int64_t row_pool::spare() const {
  return store_->spare;
}

std::int64_t row_pool::rows() const {
  return store_->rows;
}

std::int64_t row_pool::free_rows() const {
  return store_->free_rows();
}

std::size_t row_pool::row_bytes() const {
  std::size_t sum = 0;
  for (const auto& part : store_->parts) {
    auto numbers = part.size(0);
    for (const auto size : part.sizes().slice(2)) numbers *= size;
    sum += static_cast<std::size_t>(numbers) * part.element_size();
  }
  return sum;
}

} // namespace parley::inference::speech
