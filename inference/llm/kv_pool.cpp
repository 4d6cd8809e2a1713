#include "inference/llm/kv_pool.hpp"

#include "base/assert.hpp"
#include "inference/kernels/transfer.hpp"
#include "inference/llm/page_table.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace parley::inference::llm {

struct kv_pool::store {
  at::Tensor keys; ///< [layers, pages * page_tokens, kv_heads, head_dim]
  at::Tensor values;
  page_table pages;
  std::function<bool()> let_go = {};
  std::uint64_t moved = 0;
};

kv_pool::kv_pool(const llm_config& config, int sequences, int tokens, at::ScalarType dtype, at::Device device)
    : kv_pool(config, room{sequences * pages_of(tokens), pages_of(tokens)}, dtype, device) {}

kv_pool::kv_pool(const llm_config& config, room size, at::ScalarType dtype, at::Device device) {
  const auto rows = (std::int64_t{size.pages} + (device.is_cpu() ? 0 : 1)) * page_tokens;
  auto make = [&] {
    return at::empty({config.layers, rows, config.kv_heads, config.head_dim}, at::TensorOptions(dtype).device(device));
  };
  store_ = std::make_shared<store>(store{make(), make(), page_table(size.pages, size.pages_per_sequence)});
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

std::uint64_t kv_pool::moved_rows() const {
  return store_->moved;
}

void kv_pool::when_full(std::function<bool()> let_go) const {
  store_->let_go = std::move(let_go);
}

std::size_t kv_pool::bytes(const llm_config& config, int tokens, at::ScalarType dtype) {
  auto rows = static_cast<std::size_t>(kv_pool::pages_of(tokens)) * page_tokens;
  return 2 * rows * static_cast<std::size_t>(config.layers) * static_cast<std::size_t>(config.kv_heads) *
         static_cast<std::size_t>(config.head_dim) * c10::elementSize(dtype);
}

kv_cache::kv_cache(std::shared_ptr<kv_pool::store> store) : store_(std::move(store)) {}

kv_cache::kv_cache(kv_cache&& other) noexcept
    : store_(std::move(other.store_)), pages_(std::exchange(other.pages_, {})),
      length_(std::exchange(other.length_, 0)), gap_(std::exchange(other.gap_, std::nullopt)),
      parked_(std::exchange(other.parked_, std::nullopt)) {}

kv_cache& kv_cache::operator=(kv_cache&& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(pages_, other.pages_);
  std::swap(length_, other.length_);
  std::swap(gap_, other.gap_);
  std::swap(parked_, other.parked_);
  return *this;
}

kv_cache::~kv_cache() {
  if (store_) release(0);
}

std::int64_t kv_cache::layers() const {
  return store_->keys.size(0);
}

int kv_cache::own_pages() const {
  return static_cast<int>(std::ranges::count_if(pages_, [&](auto page) { return !store_->pages.shared(page); }));
}

std::int64_t kv_cache::spare_row() const {
  PARLEY_ASSERT(!store_->keys.is_cpu(), "nothing pads a call on the CPU");
  return std::int64_t{store_->pages.size()} * kv_pool::page_tokens;
}

kv_cache kv_cache::fork() const {
  PARLEY_ASSERT(!parked_ && !gap_, "a cache that is shared has all its rows");
  kv_cache other(store_);
  other.length_ = length_;
  other.pages_.assign(pages_.begin(), pages_.begin() + kv_pool::pages_of(length_));
  for (auto page : other.pages_) store_->pages.share(page);
  return other;
}

kv_cache kv_cache::keep() const {
  auto other = fork();
  other.own_last_page(place::apart);
  return other;
}

std::int32_t kv_cache::take(std::int32_t last, place where) const {
  auto& pages = store_->pages;
  while (pages.free() == 0 && store_->let_go && store_->let_go()) {
  }
  const auto page = where == place::in_run ? pages.take(last) : pages.take_apart();
  if (!page) throw std::runtime_error("the pool of keys and values is full");
  return *page;
}

/// Makes one page this cache's own, with the same rows.
void kv_cache::own_page(std::size_t number, place where) {
  const auto from = pages_[number];
  if (!store_->pages.shared(from)) return;
  const auto to = take(number > 0 ? pages_[number - 1] : -1, where);
  auto rows = [](const at::Tensor& x, std::int32_t page) {
    return x.narrow(1, std::int64_t{page} * kv_pool::page_tokens, kv_pool::page_tokens);
  };
  try {
    rows(store_->keys, to).copy_(rows(store_->keys, from));
    rows(store_->values, to).copy_(rows(store_->values, from));
  } catch (...) {
    store_->pages.give_back(to);
    throw;
  }
  store_->pages.give_back(std::exchange(pages_[number], to));
}

/// Makes the last page this cache's own, so that no other cache sees what is written after its rows.
void kv_cache::own_last_page(place where) {
  if (length_ % kv_pool::page_tokens == 0) return;
  own_page(static_cast<std::size_t>(length_ / kv_pool::page_tokens), where);
}

void kv_cache::release(std::size_t keep) {
  while (pages_.size() > keep) {
    store_->pages.give_back(pages_.back());
    pages_.pop_back();
  }
}

int kv_cache::pages_to_take(std::int64_t rows) const {
  if (rows == 0) return kv_pool::pages_of(extent()) - pages();
  return pages_to_write(length_, length_ + rows);
}

int kv_cache::pages_to_write(std::int64_t begin, std::int64_t end) const {
  const auto more = kv_pool::pages_of(std::max(end, extent())) - pages();
  const auto first = std::min(pages_.size(), static_cast<std::size_t>(begin / kv_pool::page_tokens));
  const auto last = std::min(pages_.size(), static_cast<std::size_t>(kv_pool::pages_of(end)));
  if (last <= first) return more;
  const auto copied = std::ranges::count_if(std::span(pages_).subspan(first, last - first),
                                            [&](auto page) { return store_->pages.shared(page); });
  return more + static_cast<int>(copied);
}

void kv_cache::park() {
  if (parked_) return;
  auto on_host = [&](const at::Tensor& side) { // layer by layer: the device is short of memory
    auto rows = at::empty({side.size(0), extent(), side.size(2), side.size(3)}, side.options().device(at::kCPU));
    for (auto layer = std::int64_t{0}; layer < side.size(0); ++layer)
      rows.select(0, layer).copy_(rows_of(side.select(0, layer), 0, extent()));
    return rows;
  };
  parked_ = kv_segment{on_host(store_->keys), on_host(store_->values)};
  release(0);
}

void kv_cache::restore() {
  if (!parked_) return;
  make_room(0, extent());
  std::vector<std::int64_t> targets;
  list_rows(0, extent(), targets);
  const auto target = upload(at::tensor(targets, at::kLong), store_->keys.device());
  for (auto layer = std::int64_t{0}; layer < store_->keys.size(0); ++layer)
    write(static_cast<int>(layer), target, parked_->keys.select(0, layer).to(target.device()),
          parked_->values.select(0, layer).to(target.device()));
  parked_.reset();
}

void kv_cache::reserve(std::int64_t rows) {
  PARLEY_ASSERT(!parked_, "a parked cache is restored before it grows");
  if (rows == 0) return;
  own_last_page(place::in_run);
  auto before = pages_.size();
  auto needed = kv_pool::pages_of(std::max(length_ + rows, extent()));
  try {
    pages_.reserve(static_cast<std::size_t>(needed)); // so that every page taken can be recorded
    while (std::ssize(pages_) < needed) pages_.push_back(take(pages_.empty() ? -1 : pages_.back(), place::in_run));
  } catch (...) {
    release(before);
    throw;
  }
}

at::Tensor kv_cache::pool_keys(int layer) const {
  return store_->keys.select(0, layer);
}

at::Tensor kv_cache::pool_values(int layer) const {
  return store_->values.select(0, layer);
}

void kv_cache::rows_to_write(std::int64_t rows, std::vector<std::int64_t>& into) const {
  list_rows(length_, rows, into);
}

void kv_cache::list_rows(std::int64_t begin, std::int64_t rows, std::vector<std::int64_t>& into) const {
  for (auto row = begin; row < begin + rows; ++row)
    into.push_back(std::int64_t{pages_[static_cast<std::size_t>(row / kv_pool::page_tokens)]} * kv_pool::page_tokens +
                   row % kv_pool::page_tokens);
}

void kv_cache::write(int layer, const at::Tensor& rows, const at::Tensor& keys, const at::Tensor& values) const {
  store_->keys.select(0, layer).index_copy_(0, rows, keys);
  store_->values.select(0, layer).index_copy_(0, rows, values);
}

std::vector<pool_run> kv_cache::runs_of(std::int64_t begin, std::int64_t end) const {
  std::vector<pool_run> runs;
  while (begin < end) {
    const auto first = begin / kv_pool::page_tokens;
    const std::int64_t past = kv_pool::pages_of(end);
    auto next = first + 1;
    auto page = [&](std::int64_t i) { return std::int64_t{pages_[static_cast<std::size_t>(i)]}; };
    while (next < past && page(next) == page(next - 1) + 1) ++next;
    const auto stop = std::min(end, next * kv_pool::page_tokens);
    runs.push_back({page(first) * kv_pool::page_tokens + begin % kv_pool::page_tokens, stop - begin});
    begin = stop;
  }
  return runs;
}

std::vector<pool_run> kv_cache::runs(std::int64_t pending) const {
  return runs_of(0, length_ + pending);
}

/// Of one layer, or of all.
at::Tensor kv_cache::rows_of(const at::Tensor& layer, std::int64_t begin, std::int64_t end) const {
  std::vector<at::Tensor> parts;
  for (const auto& run : runs_of(begin, end)) parts.push_back(layer.narrow(-3, run.first, run.rows));
  if (parts.empty()) return layer.narrow(-3, 0, 0);
  return parts.size() == 1 ? parts.front() : at::cat(parts, -3);
}

at::Tensor kv_cache::keys(int layer, std::int64_t pending) const {
  return rows_of(pool_keys(layer), 0, length_ + pending);
}

at::Tensor kv_cache::values(int layer, std::int64_t pending) const {
  return rows_of(pool_values(layer), 0, length_ + pending);
}

void kv_cache::truncate(std::int64_t length) {
  length_ = std::min(length_, length);
  if (gap_ && length_ < gap_->begin) gap_.reset();
  if (parked_) {
    if (extent() == 0) return parked_.reset();
    parked_->keys = parked_->keys.narrow(1, 0, extent());
    parked_->values = parked_->values.narrow(1, 0, extent());
    return;
  }
  release(static_cast<std::size_t>(kv_pool::pages_of(extent())));
}

/// Ensures that rows [from, from + rows) have pages that belong to this cache alone. Their contents are undefined.
void kv_cache::make_room(std::int64_t from, std::int64_t rows) {
  const auto before = pages_.size();
  const auto end = static_cast<std::size_t>(kv_pool::pages_of(from + rows));
  try {
    pages_.reserve(end);
    while (pages_.size() < end) pages_.push_back(take(pages_.empty() ? -1 : pages_.back(), place::in_run));
    for (auto i = static_cast<std::size_t>(from / kv_pool::page_tokens); i < end; ++i) own_page(i, place::in_run);
  } catch (...) {
    release(std::min(before, pages_.size()));
    throw;
  }
}

void kv_cache::begin_moves(std::int64_t keep, std::int64_t end) {
  PARLEY_ASSERT(!parked_ && !gap_, "rows move within a cache that has all of them");
  make_room(keep, end - keep);
  length_ = std::max(length_, end);
}

void kv_cache::move_rows(std::int64_t layer, std::span<const row_move> moves, const rope::rotation& turn) {
  std::vector<std::int64_t> sources, targets;
  for (const auto& each : moves) {
    list_rows(each.from, each.rows, sources);
    list_rows(each.to, each.rows, targets);
  }
  const auto device = store_->keys.device();
  const auto source = at::tensor(sources, at::kLong).to(device), target = at::tensor(targets, at::kLong).to(device);
  const auto keys = store_->keys.select(0, layer), values = store_->values.select(0, layer);
  keys.index_copy_(0, target, rope::apply(keys.index_select(0, source), turn));
  values.index_copy_(0, target, values.index_select(0, source));
  store_->moved += sources.size();
}

void kv_cache::end_moves(std::int64_t keep, std::int64_t gap, std::int64_t end) {
  length_ = keep;
  gap_ = {keep, keep + gap, end};
  release(static_cast<std::size_t>(kv_pool::pages_of(end)));
}

void kv_cache::close_gap() {
  PARLEY_ASSERT(gap_ && length_ == gap_->behind, "a gap is closed once it is filled");
  length_ = gap_->end;
  gap_.reset();
}

kv_segment kv_cache::copy_from(std::int64_t begin) const {
  auto copy = [&](const at::Tensor& side) {
    auto rows = rows_of(side, begin, length_);
    return rows.is_alias_of(side) ? rows.clone() : rows;
  };
  return {copy(store_->keys), copy(store_->values), begin};
}

void kv_cache::append(const kv_segment& segment, const rope& positions) {
  put_at(length_, segment, positions);
}

void kv_cache::drop(std::int64_t begin, std::int64_t count, const rope& positions) {
  put_at(begin, copy_from(begin + count), positions);
}

/// Replaces the rows from `begin` on. Everything that can fail happens before the first row is written.
void kv_cache::put_at(std::int64_t begin, const kv_segment& segment, const rope& positions) {
  const auto rows = segment.rows();
  if (rows > 0) {
    const row_move moved{segment.begin, begin, rows};
    const auto keys = rope::apply(segment.keys, positions.move({&moved, 1}));
    make_room(begin, rows);
    std::vector<std::int64_t> targets;
    list_rows(begin, rows, targets);
    const auto target = upload(at::tensor(targets, at::kLong), keys.device());
    store_->keys.index_copy_(1, target, keys);
    store_->values.index_copy_(1, target, segment.values);
  }
  length_ = begin + rows;
  release(static_cast<std::size_t>(kv_pool::pages_of(length_)));
}

} // namespace parley::inference::llm
