#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// What the streams of a network remember on an accelerator, where one operator reads or writes the rows of all of them:
/// some tensors, in each of which a stream owns the same rows, a region. Grows with need and never shrinks. Copies share
/// it. Not thread-safe.
class row_pool {
  struct store;

public:
  /// Rows that follow one another, free again when it is destroyed. Keeps the memory alive.
  class region {
  public:
    region(std::shared_ptr<store> in, std::int64_t first, std::int64_t count);
    ~region();
    region(const region&) = delete;
    region& operator=(const region&) = delete;

    std::int64_t first() const { return first_; }
    std::int64_t count() const { return count_; }

    /// The pool that it belongs to.
    row_pool pool() const { return row_pool(store_); }

  private:
    std::shared_ptr<store> store_;
    std::int64_t first_, count_;
  };

  /// A tensor for each of `depths`, [depth, rows, `row`…]. `spare`: how many rows a history may grow by before it needs
  /// another region. Takes no memory yet.
  row_pool(std::span<const std::int64_t> depths, at::IntArrayRef row, const at::TensorOptions& options,
           std::int64_t spare);

  /// Throws c10::Error if the device has no memory left; nothing is lost then.
  std::shared_ptr<const region> take(std::int64_t count) const;

  /// Grows at once, if fewer than `count` rows are free, rather than in `take`.
  void reserve(std::int64_t count) const;

  /// One of the tensors; valid until rows are taken.
  const at::Tensor& part(std::size_t n) const;
  std::size_t parts() const;

  std::int64_t spare() const;
  std::int64_t rows() const;
  std::int64_t free_rows() const;

  /// Bytes of a row in all tensors.
  std::size_t row_bytes() const;

  bool operator==(const row_pool& other) const = default;

private:
  explicit row_pool(std::shared_ptr<store> of) : store_(std::move(of)) {}

  std::shared_ptr<store> store_;
};

} // namespace parley::inference::speech
