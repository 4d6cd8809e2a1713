#include "inference/tts/tts_rows.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace parley::inference::speech {

struct tts_rows::store {
  std::vector<at::Tensor> layers;
  std::map<std::int64_t, std::int64_t> free; ///< first row → rows; neighbours are joined
  std::int64_t rows = 0;

  /// The first free row before `count` others, which are taken.
  std::int64_t take(std::int64_t count) {
    const auto enough = [&](const auto& gap) { return gap.second >= count; };
    auto gap = std::ranges::find_if(free, enough);
    if (gap == free.end()) {
      grow(std::max(count, rows / 2));
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

  /// One layer after another, so that little is held twice.
  void grow(std::int64_t more) {
    for (auto& layer : layers) {
      if (layer.size(0) >= rows + more) continue; // by a call that ran out of memory later
      auto larger = at::empty({rows + more, layer.size(1), layer.size(2)}, layer.options());
      if (rows > 0) larger.narrow(0, 0, rows).copy_(layer.narrow(0, 0, rows));
      layer = std::move(larger);
    }
    give_back(rows, more);
    rows += more;
  }
};

tts_rows::range::range(std::shared_ptr<store> in, std::int64_t first, std::int64_t count)
    : store_(std::move(in)), first_(first), count_(count) {}

tts_rows::range::~range() {
  store_->give_back(first_, count_);
}

at::Tensor tts_rows::range::layer(std::size_t n) const {
  return store_->layers.at(n).narrow(0, first_, count_);
}

std::shared_ptr<const tts_rows::range> tts_rows::range::another(std::int64_t count) const {
  return std::make_shared<const range>(store_, store_->take(count), count);
}

tts_rows::tts_rows(std::size_t layers, std::int64_t heads, std::int64_t head_dim, const at::TensorOptions& options)
    : store_(std::make_shared<store>()) {
  store_->layers.assign(layers, at::empty({0, heads, head_dim}, options));
}

std::shared_ptr<const tts_rows::range> tts_rows::take(std::int64_t count) const {
  return std::make_shared<const range>(store_, store_->take(count), count);
}

const at::Tensor& tts_rows::layer(std::size_t n) const {
  return store_->layers.at(n);
}

void tts_rows::copy(const at::Tensor& from, const at::Tensor& to) const {
  for (auto& layer : store_->layers) layer.index_copy_(0, to, layer.index_select(0, from));
}

} // namespace parley::inference::speech
