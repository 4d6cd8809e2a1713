#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace parley::inference::audio {

/// Keys and values of many streams on a device, in one tensor each, so that one call attends for all of them. Not
/// thread-safe.
class encoder_pool : public std::enable_shared_from_this<encoder_pool> {
public:
  /// The sizes of one cache; `options`: dtype and device.
  struct shape {
    std::int64_t layers, heads, positions, head_dim;
  };
  encoder_pool(const shape& each, const at::TensorOptions& options) : each_(each), options_(options) {}

  /// The place of one cache, given back when it goes.
  class slot {
  public:
    explicit slot(std::shared_ptr<encoder_pool> pool);
    ~slot();
    slot(const slot&) = delete;
    slot& operator=(const slot&) = delete;

    const encoder_pool& pool() const { return *pool_; }

    /// The cache's first row.
    std::int64_t first_row() const { return number_ * pool_->each_.positions; }

  private:
    std::shared_ptr<encoder_pool> pool_;
    std::int64_t number_;
  };

  /// If no slot is free, the pool's memory doubles, which copies it.
  std::shared_ptr<const slot> take();

  /// Ensures that the pool has so many slots.
  void reserve(std::int64_t slots);

  /// [layers, rows, heads, head_dim]
  const at::Tensor& keys() const { return keys_; }
  const at::Tensor& values() const { return values_; }

private:
  shape each_;
  at::TensorOptions options_;
  at::Tensor keys_, values_;
  std::vector<std::int64_t> free_;
  std::int64_t slots_ = 0;
};

/// A session's encoder state: keys and values of every frame since the last reset (docs/model/thinker.md 3.4), in the
/// encoder's dtype and on its device. Made by `encoder::make_cache` and owned by the caller; an engine keeps them in a
/// pool and clears them between sessions. Copies share the memory.
struct encoder_cache {
  at::Tensor own_keys, own_values;                ///< on the CPU: [layers, heads, max_positions, head_dim]
  std::shared_ptr<const encoder_pool::slot> slot; ///< on a device
  std::int64_t length = 0;                        ///< frames held; the next chunk begins at this position

  void clear() { length = 0; }

  /// A view of the frames held, in one layer: [heads, length, head_dim].
  at::Tensor keys(std::int64_t layer) const;
  at::Tensor values(std::int64_t layer) const;
};

} // namespace parley::inference::audio
