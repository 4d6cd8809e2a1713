#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace parley::inference {

/// Some rows of queries and the keys that they attend to: rows that follow one another in a tensor of many sequences'
/// keys.
struct attention_run {
  std::int64_t queries;   ///< rows, after those of the run before; 0 = the run is left out
  std::int64_t first_key; ///< a row; key rows of several runs may overlap and come in any order
  std::int64_t keys;      ///< rows, at least 1; if causal, at least `queries`
};

/// Grouped-query attention of many sequences of different lengths, without padding: one call, whatever their number.
/// Planned once for all layers.
///
/// On a device with LibTorch's fused kernels these are used: flash attention for bfloat16 and float16, memory-efficient
/// attention for everything else. On the CPU it is `cpu::attend`. What remains, and everything after `prefer_loop`, is a
/// loop over the runs.
class varlen_attention {
public:
  /// causal: the last query of a run sees all its keys, and each one before it sees one key less.
  enum class mask { none, causal };

  /// The most that a run has in any plan of equally many runs and queries, if all of them shall use the same kernels over
  /// the same memory (graph_cache); 0 = whatever suits these runs.
  struct bounds {
    std::int64_t queries = 0, keys = 0;
  };

  /// Throws std::invalid_argument if a query would see no key, or a run exceeds the bounds.
  varlen_attention(std::span<const attention_run> runs, mask which, const bounds& at_most = {0, 0});

  /// What the device must know, for an upload together with other numbers; then call `use`.
  std::span<const std::int32_t> numbers() const { return numbers_; }

  /// `numbers`: int32 [numbers().size()], contiguous, on the device where `run` is called.
  void use(at::Tensor numbers);

  /// Uploads the numbers alone. Nothing is copied for the CPU.
  void upload(at::Device device);

  /// `query` [sum of queries, heads, head_dim]; `keys`, `values` [rows, kv_heads, head_dim] with any distance between
  /// rows; all in one dtype on the device of the plan, their last dimension contiguous. Returns [sum of queries, heads,
  /// head_dim]. `logsumexp`, if given, becomes float32 [sum of queries, heads]: the logarithm of each softmax's
  /// denominator, by which results over different keys are combined. Throws std::invalid_argument for shapes that do not
  /// fit the plan.
  at::Tensor run(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                 at::Tensor* logsumexp = nullptr) const;

  std::int64_t queries() const { return queries_; }

  /// Whether a plan within bounds asks this device for the same kernels whatever its runs are.
  static bool is_one_call(at::Device device, at::ScalarType dtype);

  /// Compares the fused kernels with plain ones: from now on, every call on every device is a loop.
  static void prefer_loop(bool loop);

private:
  void check(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values) const;
  at::Tensor flash(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values, at::Tensor* lse) const;
  at::Tensor flash_in_two(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                          at::Tensor* lse) const;
  at::Tensor efficient(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values,
                       at::Tensor* lse) const;
  template<class Number>
  at::Tensor on_cpu(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values) const;
  at::Tensor loop(const at::Tensor& query, const at::Tensor& keys, const at::Tensor& values, at::Tensor* lse) const;

  std::vector<attention_run> runs_; ///< those with queries
  bool causal_;                     ///< and some run has several queries
  std::int64_t queries_ = 0, most_queries_ = 0, most_keys_ = 0, past_keys_ = 0;
  std::int64_t singles_ = 0; ///< runs of one query before the first longer one, if there is a longer one
  std::vector<std::int32_t> numbers_;
  at::Tensor query_starts_, first_keys_, key_counts_, weight_rows_;
  at::Tensor later_starts_; ///< of the runs after the singles, counted from theirs
  bool fused_ = false;
};

} // namespace parley::inference
