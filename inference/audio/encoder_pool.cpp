#include "inference/audio/encoder_pool.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace parley::inference::audio {

namespace {

at::Tensor held(const encoder_cache& cache, const at::Tensor& own, const at::Tensor& pooled, std::int64_t layer) {
  if (own.defined()) return own[layer].narrow(1, 0, cache.length);
  return pooled[layer].narrow(0, cache.slot->first_row(), cache.length).transpose(0, 1);
}

} // namespace

encoder_pool::slot::slot(std::shared_ptr<encoder_pool> pool) : pool_(std::move(pool)), number_(pool_->free_.back()) {
  pool_->free_.pop_back();
}

encoder_pool::slot::~slot() {
  pool_->free_.push_back(number_); // never allocates: `reserve` made room for all
}

std::shared_ptr<const encoder_pool::slot> encoder_pool::take() {
  if (free_.empty()) reserve(std::max<std::int64_t>(2 * slots_, 1));
  return std::make_shared<const slot>(shared_from_this());
}

void encoder_pool::reserve(std::int64_t slots) {
  if (slots <= slots_) return;
  const auto grown = [&](const at::Tensor& before) {
    auto after = at::empty({each_.layers, slots * each_.positions, each_.heads, each_.head_dim}, options_);
    if (before.defined()) after.narrow(1, 0, before.size(1)).copy_(before);
    return after;
  };
  auto keys = grown(keys_), values = grown(values_);
  free_.reserve(static_cast<std::size_t>(slots));
  keys_ = std::move(keys);
  values_ = std::move(values);
  for (auto number = slots; number-- > slots_;) free_.push_back(number);
  slots_ = slots;
}

at::Tensor encoder_cache::keys(std::int64_t layer) const {
  return held(*this, own_keys, slot ? slot->pool().keys() : at::Tensor(), layer);
}

at::Tensor encoder_cache::values(std::int64_t layer) const {
  return held(*this, own_values, slot ? slot->pool().values() : at::Tensor(), layer);
}

} // namespace parley::inference::audio
