#include "inference/kernels/attention.hpp"
#include "inference/kernels/parallel.hpp"
#include "inference/kernels/rows.hpp"
#include "inference/llm/qwen3.hpp"

#include <ATen/ATen.h>

#include <algorithm>

// The decoder's layers on the CPU: matrix products by the library, everything between them by our own loops, over the
// rows of all sequences. All layers use the same buffers.
namespace parley::inference::llm {

namespace {

template<class Number>
const Number* numbers(const at::Tensor& t) {
  return static_cast<const Number*>(t.const_data_ptr());
}

template<class Number>
Number* numbers_to_write(at::Tensor& t) {
  return static_cast<Number*>(t.mutable_data_ptr());
}

/// The amount of work from which starting a thread pays off.
constexpr std::int64_t least_numbers = 1 << 15;

} // namespace

template<class Number>
at::Tensor qwen3::run_layers_on_cpu(const at::Tensor& embeddings, const call& what, forward_trace* trace) const {
  const std::int64_t heads = config_.heads, kv_heads = config_.kv_heads, head_dim = config_.head_dim,
                     hidden = config_.hidden_size, ffn = config_.intermediate_size;
  const auto rows = embeddings.size(0), qkv_width = (heads + 2 * kv_heads) * head_dim, group = heads / kv_heads;
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  const auto *cosine = what.turn.cosine.const_data_ptr<float>(), *sine = what.turn.sine.const_data_ptr<float>();
  auto buffer = [&](std::int64_t width) { return at::empty({rows, width}, embeddings.options()); };
  auto x = embeddings.clone(at::MemoryFormat::Contiguous);
  auto normed = buffer(hidden), queries = buffer(heads * head_dim), attended = buffer(heads * head_dim),
       gated = buffer(ffn);

  auto over_rows = [&](std::int64_t width, auto&& work) {
    cpu::parallel_for(0, rows, least_numbers / width + 1, work);
  };
  auto norm = [&](const at::Tensor& weight) {
    const auto *from = numbers<Number>(x), *by = numbers<Number>(weight);
    auto* to = numbers_to_write<Number>(normed);
    over_rows(hidden, [&](std::int64_t begin, std::int64_t end) {
      cpu::rms_norm(from + begin * hidden, by, to + begin * hidden, end - begin, hidden, eps);
    });
  };
  std::vector<std::int64_t> first_rows;
  for (auto first = std::int64_t{0}; const auto& s : what.sequences) {
    first_rows.push_back(first);
    first += s.rows;
  }

  for (auto i = 0; i < config_.layers; ++i) {
    const auto& l = layers_[static_cast<std::size_t>(i)];
    if (trace) trace->hiddens.push_back(x.clone());
    norm(l.input_norm);
    const auto qkv = l.qkv(normed);
    auto pool_keys = what.sequences.front().cache->pool_keys(i),
         pool_values = what.sequences.front().cache->pool_values(i);
    auto *keys = numbers_to_write<Number>(pool_keys), *values = numbers_to_write<Number>(pool_values);
    auto* turned = numbers_to_write<Number>(queries);
    const auto *query_norm = numbers<Number>(l.query_norm), *key_norm = numbers<Number>(l.key_norm);
    over_rows(qkv_width, [&](std::int64_t begin, std::int64_t end) {
      for (auto row = begin; row < end; ++row) {
        const auto* from = numbers<Number>(qkv) + row * qkv_width;
        const cpu::rotation by{cosine + row * head_dim, sine + row * head_dim};
        for (auto h = std::int64_t{0}; h < heads; ++h, from += head_dim)
          cpu::turn_head(from, query_norm, by, turned + (row * heads + h) * head_dim, head_dim, eps);
        const auto place = what.targets[static_cast<std::size_t>(row)] * kv_heads * head_dim;
        for (auto h = std::int64_t{0}; h < kv_heads; ++h, from += head_dim)
          cpu::turn_head(from, key_norm, by, keys + place + h * head_dim, head_dim, eps);
        std::copy(from, from + kv_heads * head_dim, values + place);
      }
    });
    auto* answered = numbers_to_write<Number>(attended);
    cpu::parallel_for(0, std::ssize(what.sequences) * kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
      for (auto n = begin; n < end; ++n) {
        const auto which = static_cast<std::size_t>(n / kv_heads);
        const auto head = n % kv_heads;
        const auto& s = what.sequences[which];
        const cpu::paged_head<Number> past{keys + head * head_dim, values + head * head_dim,
                                           s.cache->page_numbers().data(), kv_pool::page_tokens, kv_heads * head_dim};
        const auto place = (first_rows[which] * heads + head * group) * head_dim;
        cpu::attend(turned + place, past, {s.rows, s.cache->length(), group, heads * head_dim}, head_dim,
                    answered + place);
      }
    });
    l.out.add_to(x, attended);
    norm(l.post_norm);
    const auto gate_up = l.gate_up(normed);
    over_rows(2 * ffn, [&](std::int64_t begin, std::int64_t end) {
      cpu::silu_mul(numbers<Number>(gate_up) + begin * 2 * ffn, numbers_to_write<Number>(gated) + begin * ffn,
                    end - begin, ffn);
    });
    l.down.add_to(x, gated);
  }
  return x;
}

template at::Tensor qwen3::run_layers_on_cpu<float>(const at::Tensor&, const call&, forward_trace*) const;
template at::Tensor qwen3::run_layers_on_cpu<cpu::bfloat16>(const at::Tensor&, const call&, forward_trace*) const;

} // namespace parley::inference::llm
