#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace parley::inference::speech {

/// Keys and values of all sessions' turns on an accelerator, where attention reads those of all sessions in one call: a
/// tensor for each layer, in which each cache owns rows that follow one another. Grows with need and never shrinks.
/// Copies share it. Not thread-safe.
class tts_rows {
  struct store;

public:
  /// Rows of every layer, free again when it is destroyed. Keeps the memory alive.
  class range {
  public:
    range(std::shared_ptr<store> in, std::int64_t first, std::int64_t count);
    ~range();
    range(const range&) = delete;
    range& operator=(const range&) = delete;

    std::int64_t first() const { return first_; }
    std::int64_t count() const { return count_; }

    /// [count, heads of keys and then of values, head_dim]; a view, valid until rows are taken.
    at::Tensor layer(std::size_t n) const;

    /// Rows elsewhere in the same memory.
    std::shared_ptr<const range> another(std::int64_t count) const;

  private:
    std::shared_ptr<store> store_;
    std::int64_t first_, count_;
  };

  /// `heads`: of keys and of values together. Takes no memory yet.
  tts_rows(std::size_t layers, std::int64_t heads, std::int64_t head_dim, const at::TensorOptions& options);

  /// Throws c10::Error if the device has no memory left; nothing is lost then.
  std::shared_ptr<const range> take(std::int64_t count) const;

  /// All rows of a layer: [rows, heads, head_dim].
  const at::Tensor& layer(std::size_t n) const;

  /// Copies rows within every layer; `from`, `to`: int64 [n] on the device.
  void copy(const at::Tensor& from, const at::Tensor& to) const;

private:
  std::shared_ptr<store> store_;
};

} // namespace parley::inference::speech
