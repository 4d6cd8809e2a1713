#include "inference/llm/kv_pool.hpp"

#include "inference/llm/page_table.hpp"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

namespace parley::inference::llm {

namespace {

int pages_for(int tokens) {
  return (tokens + kv_pool::page_tokens - 1) / kv_pool::page_tokens;
}

} // namespace

struct kv_pool::store {
  at::Tensor keys; ///< [layers, pages * page_tokens, kv_heads, head_dim]
  at::Tensor values;
  page_table pages;
};

kv_pool::kv_pool(const llm_config& config, int sequences, int tokens, at::ScalarType dtype, at::Device device) {
  auto per_sequence = pages_for(tokens);
  auto pages = sequences * per_sequence;
  auto make = [&] {
    return at::empty({config.layers, std::int64_t{pages} * page_tokens, config.kv_heads, config.head_dim},
                     at::TensorOptions(dtype).device(device));
  };
  store_ = std::make_shared<store>(store{make(), make(), page_table(pages, per_sequence)});
}

kv_cache kv_pool::open() const {
  return kv_cache(store_);
}

int kv_pool::pages() const {
  return store_->pages.size();
}

int kv_pool::free_pages() const {
  return store_->pages.free();
}

std::size_t kv_pool::bytes(const llm_config& config, int tokens, at::ScalarType dtype) {
  auto rows = static_cast<std::size_t>(pages_for(tokens)) * page_tokens;
  return 2 * rows * static_cast<std::size_t>(config.layers) * static_cast<std::size_t>(config.kv_heads) *
         static_cast<std::size_t>(config.head_dim) * c10::elementSize(dtype);
}

kv_cache::kv_cache(std::shared_ptr<kv_pool::store> store) : store_(std::move(store)) {}

kv_cache::kv_cache(kv_cache&& other) noexcept
    : store_(std::move(other.store_)), pages_(std::exchange(other.pages_, {})),
      length_(std::exchange(other.length_, 0)), one_run_(std::exchange(other.one_run_, true)) {}

kv_cache& kv_cache::operator=(kv_cache&& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(pages_, other.pages_);
  std::swap(length_, other.length_);
  std::swap(one_run_, other.one_run_);
  return *this;
}

kv_cache::~kv_cache() {
  if (store_) release(0);
}

void kv_cache::release(std::size_t keep) {
  while (pages_.size() > keep) {
    store_->pages.give_back(pages_.back());
    pages_.pop_back();
  }
  one_run_ = true;
  for (auto i = std::size_t{1}; i < pages_.size(); ++i) one_run_ &= pages_[i] == pages_[i - 1] + 1;
}

void kv_cache::reserve(std::int64_t rows) {
  auto before = pages_.size();
  auto needed = static_cast<std::size_t>((length_ + rows + kv_pool::page_tokens - 1) / kv_pool::page_tokens);
  while (pages_.size() < needed) {
    auto last = pages_.empty() ? -1 : pages_.back();
    auto page = store_->pages.take(last);
    if (!page) {
      release(before);
      throw std::runtime_error("the pool of keys and values is full");
    }
    one_run_ &= last < 0 || *page == last + 1;
    pages_.push_back(*page);
  }
}

void kv_cache::rows_to_write(std::int64_t rows, std::vector<std::int64_t>& into) const {
  for (auto row = length_; row < length_ + rows; ++row)
    into.push_back(std::int64_t{pages_[static_cast<std::size_t>(row / kv_pool::page_tokens)]} * kv_pool::page_tokens +
                   row % kv_pool::page_tokens);
}

void kv_cache::write(int layer, const at::Tensor& rows, const at::Tensor& keys, const at::Tensor& values) const {
  store_->keys.select(0, layer).index_copy_(0, rows, keys);
  store_->values.select(0, layer).index_copy_(0, rows, values);
}

at::Tensor kv_cache::rows_of(const at::Tensor& layer, std::int64_t rows) const {
  if (one_run_) {
    auto first = pages_.empty() ? 0 : std::int64_t{pages_.front()} * kv_pool::page_tokens;
    return layer.narrow(-3, first, rows);
  }
  std::vector<at::Tensor> parts;
  for (auto page = std::size_t{0}; rows > 0; ++page) {
    auto here = std::min<std::int64_t>(rows, kv_pool::page_tokens);
    parts.push_back(layer.narrow(-3, std::int64_t{pages_[page]} * kv_pool::page_tokens, here));
    rows -= here;
  }
  return at::cat(parts, -3);
}

at::Tensor kv_cache::keys(int layer, std::int64_t pending) const {
  return rows_of(store_->keys.select(0, layer), length_ + pending);
}

at::Tensor kv_cache::values(int layer, std::int64_t pending) const {
  return rows_of(store_->values.select(0, layer), length_ + pending);
}

void kv_cache::truncate(std::int64_t length) {
  length_ = std::min(length_, length);
  release(static_cast<std::size_t>((length_ + kv_pool::page_tokens - 1) / kv_pool::page_tokens));
}

kv_segment kv_cache::copy_from(std::int64_t begin) const {
  auto rows = length_ - begin;
  return {rows_of(store_->keys, length_).narrow(1, begin, rows).clone(),
          rows_of(store_->values, length_).narrow(1, begin, rows).clone(), begin};
}

void kv_cache::append(const kv_segment& segment, const rope& positions) {
  auto rows = segment.rows();
  if (rows == 0) return;
  reserve(rows);
  std::vector<std::int64_t> targets;
  rows_to_write(rows, targets);
  auto target = at::tensor(targets, at::kLong).to(segment.keys.device());
  auto turn = positions.move(segment.begin, length_, rows);
  for (auto layer = 0; layer < segment.keys.size(0); ++layer)
    write(layer, target, rope::apply(segment.keys.select(0, layer), turn), segment.values.select(0, layer));
  commit(rows);
}

void kv_cache::drop(std::int64_t begin, std::int64_t count, const rope& positions) {
  auto tail = copy_from(begin + count);
  truncate(begin);
  append(tail, positions);
}

} // namespace parley::inference::llm
