#pragma once

#include "inference/kernels/packed_upload.hpp"
#include "inference/vocoder/row_history.hpp"
#include "inference/vocoder/row_pool.hpp"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace parley::inference::speech {

/// The last `rows()` inputs that causal convolutions have had of each stream, which every call replaces; zeros before a
/// stream's first one. In an accelerator's memory.
class row_contexts {
public:
  /// A stream's rows in all convolutions.
  using state = row_history;

  /// How many regions' worth of rows a stream's region has: a call reads one and writes another, while the stream before
  /// its last call may have to be gone back to.
  static constexpr std::int64_t versions = 3;

  /// One tensor [depth, rows, width].
  row_contexts(std::int64_t depth, std::int64_t rows, std::int64_t width, const at::TensorOptions& options);

  const at::Tensor& tensor() const { return pool_.part(0); }
  std::int64_t rows() const { return rows_; }
  const row_pool& pool() const { return pool_; }

  /// What one call reads and writes.
  class exchange {
  public:
    /// As `row_writes`.
    exchange(const row_contexts& in, std::span<state* const> of);

    /// Also zeros of `streams` more, whose new rows all go to those from `first` on.
    void pad(std::int64_t streams, std::int64_t first);
    void move() const { writes_.move(); }
    void add_to(packed_upload& numbers);
    void use(const packed_upload& sent);

    /// int64 [streams * rows]: where each stream's rows are, and where the new ones go.
    const at::Tensor& sources() const { return sources_; }
    const at::Tensor& targets() const { return writes_.targets(); }

  private:
    row_writes writes_;
    std::int64_t rows_, zeros_;
    std::vector<std::int64_t> planned_;
    packed_upload::part source_part_;
    at::Tensor sources_;
  };

private:
  row_pool pool_;
  std::int64_t rows_;
  std::shared_ptr<const row_pool::region> zeros_;
};

} // namespace parley::inference::speech
