#include "inference/tts/llama.hpp"

#include "base/assert.hpp"
#include "inference/kernels/attention.hpp"
#include "inference/kernels/packed_upload.hpp"
#include "inference/kernels/parallel.hpp"
#include "inference/kernels/rows.hpp"
#include "inference/kernels/transfer.hpp"
#include "inference/kernels/varlen_attention.hpp"
#include "inference/speech/ragged.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <string>

namespace parley::inference::speech {
namespace {

constexpr std::int64_t smallest_capacity = 64;

// Calls on a device are padded to few shapes: groups of words to a multiple of so many rows ...
constexpr std::int64_t row_step = 16;
/// ... and no row sees more keys than the next power of two from here on.
constexpr std::int64_t shortest_bound = 1024;
/// A longer group of words, which forced tokens make, has a call of its own shape.
constexpr std::int64_t longest_group = 32;
/// The most rows of padding: steps of `padded_count` and `row_step`.
constexpr std::int64_t spare_rows = 64;

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  const auto half = x.size(-1) / 2;
  const auto turned = at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
  return x * cos + turned * sin;
}

/// Everything between the matrix products, in our own loops, without copying, cutting or joining anything per session.
class walk {
public:
  walk(std::span<const tts_llama::row> rows, std::span<const std::int64_t> lengths, const at::Tensor& cos,
       const at::Tensor& sin, const tts_config& config, std::int64_t head_dim)
      : rows_(rows), lengths_(lengths), heads_(config.heads), kv_heads_(config.kv_heads), head_dim_(head_dim),
        eps_(static_cast<float>(config.rms_norm_eps)), cos_(cos),
        sin_(at::cat({sin.narrow(1, 0, head_dim / 2).neg(), sin.narrow(1, head_dim / 2, head_dim / 2)}, 1)) {
    std::int64_t longest = 0;
    for (const auto& row : rows) {
      longest = std::max(longest, row.past->length());
      first_.push_back(first_.empty() ? 0 : first_.back() + lengths[first_.size() - 1]);
    }
    pages_.resize(static_cast<std::size_t>(longest / cpu::largest_page + 1));
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  at::Tensor norm(const at::Tensor& x, const at::Tensor& weight) const {
    auto to = at::empty_like(x);
    cpu::rms_norm(x.const_data_ptr<float>(), weight.const_data_ptr<float>(), to.mutable_data_ptr<float>(), x.size(0),
                  x.size(1), eps_);
    return to;
  }

  at::Tensor gate(const at::Tensor& gate_up) const {
    auto to = at::empty({gate_up.size(0), gate_up.size(1) / 2}, gate_up.options());
    cpu::silu_mul(gate_up.const_data_ptr<float>(), to.mutable_data_ptr<float>(), to.size(0), to.size(1));
    return to;
  }

  /// `parts` [n, query | key | value heads]: rotates them, writes them after each session's rows, and attends.
  at::Tensor attend(std::size_t layer, const at::Tensor& parts) const {
    auto queries = at::empty({parts.size(0), heads_ * head_dim_}, parts.options()), result = at::empty_like(queries);
    auto *turned = queries.mutable_data_ptr<float>(), *to = result.mutable_data_ptr<float>();
    cpu::parallel_for(0, std::ssize(rows_), 4, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i)
        attend(i, layer, parts.const_data_ptr<float>(), turned, to);
    });
    return result;
  }

private:
  void attend(std::size_t i, std::size_t layer, const float* parts, float* turned, float* to) const {
    const auto past = rows_[i].past->keys(layer), past_values = rows_[i].past->values(layer);
    auto *keys = past.mutable_data_ptr<float>(), *values = past_values.mutable_data_ptr<float>();
    const auto fresh = lengths_[i], length = past.size(1), head = past.stride(0), d = head_dim_;
    for (auto row = first_[i]; row < first_[i] + fresh; ++row) {
      const auto* from = parts + row * (heads_ + 2 * kv_heads_) * d;
      const auto place = (length - fresh + row - first_[i]) * d;
      const cpu::rotation by{cos_.const_data_ptr<float>() + row * d, sin_.const_data_ptr<float>() + row * d};
      for (std::int64_t h = 0; h < heads_; ++h, from += d)
        cpu::turn_head(from, nullptr, by, turned + (row * heads_ + h) * d, d, eps_);
      for (std::int64_t h = 0; h < kv_heads_; ++h, from += d)
        cpu::turn_head(from, nullptr, by, keys + h * head + place, d, eps_);
      for (std::int64_t h = 0; h < kv_heads_; ++h, from += d) std::copy(from, from + d, values + h * head + place);
    }
    const auto group = heads_ / kv_heads_;
    for (std::int64_t h = 0; h < kv_heads_; ++h) {
      const auto place = (first_[i] * heads_ + h * group) * d;
      cpu::attend(turned + place, {keys + h * head, values + h * head, pages_.data(), cpu::largest_page, d},
                  {fresh, length - fresh, group, heads_ * d}, d, to + place);
    }
  }

  std::span<const tts_llama::row> rows_;
  std::span<const std::int64_t> lengths_;
  std::int64_t heads_, kv_heads_, head_dim_;
  float eps_;
  at::Tensor cos_, sin_; ///< the sines include the sign of the swapped halves
  std::vector<std::int64_t> first_;
  std::vector<std::int32_t> pages_;
};

/// All sessions' input rows; tokens are looked up at once.
at::Tensor embedded(std::span<const tts_llama::row> rows, const at::Tensor& tokens) {
  std::vector<at::Tensor> pieces;
  bool given = false;
  at::Tensor looked_up;
  if (tokens.size(0) > 0) looked_up = rows.front().codes->codes(tokens);
  std::int64_t begin = 0;
  for (const auto& row : rows) {
    given = given || row.embeddings.defined();
    if (row.embeddings.defined()) pieces.push_back(row.embeddings);
    const auto n = std::ssize(row.tokens);
    if (n > 0) pieces.push_back(looked_up.narrow(0, begin, n));
    begin += n;
  }
  return given ? at::cat(pieces, 0) : looked_up;
}

} // namespace

at::Tensor tts_cache::keys(std::size_t layer) const {
  if (!rows_) return keys_.at(layer).narrow(1, begin_, length_);
  return rows_->layer(layer).chunk(2, 1)[0].narrow(0, begin_, length_).transpose(0, 1);
}

at::Tensor tts_cache::values(std::size_t layer) const {
  if (!rows_) return values_.at(layer).narrow(1, begin_, length_);
  return rows_->layer(layer).chunk(2, 1)[1].narrow(0, begin_, length_).transpose(0, 1);
}

void tts_cache::keep_last(std::int64_t rows) {
  if (length_ > rows) {
    begin_ += length_ - rows;
    length_ = rows;
  }
}

void tts_cache::assign(std::vector<at::Tensor> keys, std::vector<at::Tensor> values) {
  const auto length = keys.at(0).size(1);
  if (rows_) {
    auto elsewhere = rows_->another(length);
    for (std::size_t n = 0; n < keys.size(); ++n)
      elsewhere->layer(n).copy_(at::cat({keys[n], values[n]}, 0).transpose(0, 1));
    rows_ = std::move(elsewhere);
  } else {
    keys_ = std::move(keys);
    values_ = std::move(values);
  }
  begin_ = 0;
  length_ = length;
}

bool tts_cache::has_room(std::int64_t more) const {
  const auto capacity = rows_ ? rows_->count() : keys_.empty() ? 0 : keys_[0].size(1);
  return begin_ + length_ + more <= capacity;
}

std::int64_t tts_cache::wanted_for(std::int64_t more) const {
  return std::max({smallest_capacity, 2 * length_, length_ + more});
}

void tts_cache::extend(std::size_t layers, std::int64_t more, const at::Tensor& like) {
  if (has_room(more)) {
    length_ += more;
    return;
  }
  const auto wanted = wanted_for(more);
  auto grown = [&](const std::vector<at::Tensor>& side) {
    std::vector<at::Tensor> result;
    for (std::size_t n = 0; n < layers; ++n) {
      result.push_back(at::empty({like.size(0), wanted, like.size(2)}, like.options()));
      if (length_ > 0) result.back().narrow(1, 0, length_).copy_(side[n].narrow(1, begin_, length_));
    }
    return result;
  };
  auto keys = grown(keys_), values = grown(values_);
  keys_ = std::move(keys);
  values_ = std::move(values);
  begin_ = 0;
  length_ += more;
}

tts_llama::tts_llama(const tensor_map& weights, const tts_config& config)
    : config_(config), final_norm_(weights.at("model.norm.weight", {-1})) {
  const auto folded = fold_weight_norm(weights);
  head_ = folded.at("head_code.0.weight", {-1, final_norm_.size(0)});
  const auto width = final_norm_.size(0), count = std::int64_t{weights.count("model.layers.")};
  if (count == 0) throw std::runtime_error(weights.origin() + ": no tensors model.layers.*");
  const auto joined = weights.at("model.layers.0.self_attn.o_proj.weight", {width, -1}).size(1);
  head_dim_ = joined / config_.heads;
  if (head_dim_ < 2 || head_dim_ % 2 != 0 || joined != config_.heads * head_dim_)
    throw std::runtime_error(weights.origin() + ": attention heads of config.json don't fit the weights");
  for (std::int64_t i = 0; i < count; ++i)
    layers_.push_back(read_layer(weights, "model.layers." + std::to_string(i) + '.', width));
  if (head_dim_ > cpu::largest_head) throw std::runtime_error(weights.origin() + ": attention heads are too large");
  const auto options = final_norm_.options().dtype(at::kFloat);
  frequencies_ =
      1.0 / at::pow(config_.rope_theta, at::arange(0, head_dim_, 2, options) / static_cast<double>(head_dim_));
  if (final_norm_.is_cpu()) return;
  rows_.emplace(layers_.size(), 2 * config_.kv_heads, head_dim_, options);
}

/// Every tensor has exactly the shape that our loops assume.
tts_llama::layer tts_llama::read_layer(const tensor_map& weights, const std::string& name, std::int64_t width) const {
  const auto queries = config_.heads * head_dim_, keys = config_.kv_heads * head_dim_;
  const auto feed = weights.at(name + "mlp.gate_proj.weight", {-1, width}).size(0);
  const auto matrix = [&](const char* part, std::int64_t out, std::int64_t in) {
    return weights.at(name + part + ".weight", {out, in});
  };
  layer made;
  made.attention_norm = weights.at(name + "input_layernorm.weight", {width});
  made.feed_norm = weights.at(name + "post_attention_layernorm.weight", {width});
  made.query_key_value.weight =
      at::cat({matrix("self_attn.q_proj", queries, width), matrix("self_attn.k_proj", keys, width),
               matrix("self_attn.v_proj", keys, width)},
              0);
  made.gate_up.weight = at::cat({matrix("mlp.gate_proj", feed, width), matrix("mlp.up_proj", feed, width)}, 0);
  matrix("self_attn.o_proj", width, queries);
  made.out = linear(weights, name + "self_attn.o_proj");
  matrix("mlp.down_proj", width, feed);
  made.down = linear(weights, name + "mlp.down_proj");
  return made;
}

void tts_llama::use_int8() {
  for (auto& layer : layers_)
    for (auto* product : {&layer.query_key_value, &layer.out, &layer.gate_up, &layer.down}) product->use_int8();
}

void tts_llama::use_bfloat16() {
  dtype_ = at::kBFloat16;
  for (auto& layer : layers_) {
    for (auto* norm : {&layer.attention_norm, &layer.feed_norm}) *norm = norm->to(dtype_);
    for (auto* product : {&layer.query_key_value, &layer.out, &layer.gate_up, &layer.down}) product->convert(dtype_);
  }
  rows_.emplace(layers_.size(), 2 * config_.kv_heads, head_dim_, final_norm_.options().dtype(dtype_));
}

std::size_t tts_llama::row_bytes() const {
  return 2 * layers_.size() * static_cast<std::size_t>(config_.kv_heads * head_dim_) * c10::elementSize(dtype_);
}

at::Tensor tts_llama::norm(const at::Tensor& x, const at::Tensor& weight) const {
  if (!x.is_cpu()) return std::get<0>(at::_fused_rms_norm(x, weight.sizes(), weight, config_.rms_norm_eps));
  return x * at::rsqrt(x.square().mean(-1, true) + config_.rms_norm_eps) * weight;
}

tts_llama::angles tts_llama::angles_of(const at::Tensor& positions) const {
  const auto half = positions.unsqueeze(1) * frequencies_;
  const auto both = at::cat({half, half}, 1);
  return {at::cos(both), at::sin(both)};
}

at::Tensor tts_llama::rotate(const at::Tensor& keys, const at::Tensor& positions) const {
  const auto [cos, sin] = angles_of(positions);
  return rotated(keys, cos, sin);
}

template<class Call>
auto tts_llama::undone_if_it_throws(std::span<const row> rows, Call call) {
  std::vector<std::int64_t> before;
  for (const auto& row : rows) before.push_back(row.past->length());
  try {
    return call();
  } catch (...) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].past->length_ = before[i];
    throw;
  }
}

at::Tensor tts_llama::forward(std::span<const row> rows) const {
  return undone_if_it_throws(rows, [&] { return extend(rows); });
}

std::vector<at::Tensor> tts_llama::next_logits(std::span<const row> rows) const {
  return undone_if_it_throws(rows, [&] {
    return rows_ ? logits_on_device(rows) : logits(extend(rows)).to(at::kFloat).contiguous().unbind(0);
  });
}

/// Rows of a device's call that it needs so as to have one of few shapes.
struct tts_llama::padding {
  std::int64_t runs = 0, rows = 0; ///< more of each; at least one row a run
  std::int64_t first = 0;          ///< of the rows of the store that they may use, as many as `rows`
  varlen_attention::bounds bounds; ///< of the whole call's attention; {0, 0} = a call like no other
};

/// One call's rows, known on the host before it begins, and uploaded at once.
struct tts_llama::plan {
  std::vector<std::int64_t> lengths; ///< rows of each session
  packed_upload numbers;
  at::Tensor tokens;    ///< all sessions' tokens
  at::Tensor positions; ///< of each row
  at::Tensor last;      ///< each session's last row

  // Elsewhere than on the CPU.
  at::Tensor targets; ///< int64: where keys and values of each row are written
  std::optional<varlen_attention> attention;

  /// The caches must have room; if they are on a device, they already include the new rows. Call `use` next.
  plan(std::span<const row> rows, at::Device device, const padding& more = {}) {
    std::vector<std::int64_t> ids, places, ends, written;
    std::vector<attention_run> runs;
    for (const auto& row : rows) {
      const auto n = row.rows();
      lengths.push_back(n);
      ids.insert(ids.end(), row.tokens.begin(), row.tokens.end());
      for (std::int64_t i = 0; i < n; ++i) places.push_back(row.position + i);
      ends.push_back(std::ssize(places) - 1);
      if (device.is_cpu()) continue;
      const auto first = row.past->rows_->first() + row.past->begin_, keys = row.past->length_;
      runs.push_back({n, first, keys});
      for (std::int64_t i = keys - n; i < keys; ++i) written.push_back(first + i);
    }
    const bool by_tokens = std::ssize(ids) == std::ssize(places);
    for (std::int64_t i = 0, from = more.first; i < more.runs; ++i) {
      const auto n = i + 1 < more.runs ? 1 : more.rows - i; // the last one takes what is left
      runs.push_back({n, from, n});
      for (std::int64_t k = 0; k < n; ++k) {
        places.push_back(k);
        written.push_back(from + k);
        if (by_tokens) ids.push_back(0);
      }
      ends.push_back(std::ssize(places) - 1);
      from += n;
    }
    token_part_ = numbers.add(ids);
    place_part_ = numbers.add(places);
    end_part_ = numbers.add(ends);
    target_part_ = numbers.add(written);
    if (device.is_cpu()) return;
    attention.emplace(runs, varlen_attention::mask::causal, more.bounds);
    attention_part_ = numbers.add(attention->numbers());
  }

  void use(const packed_upload& sent) {
    tokens = sent[token_part_];
    positions = sent[place_part_];
    last = sent[end_part_];
    if (!attention) return;
    targets = sent[target_part_];
    attention->use(sent[attention_part_]);
  }

private:
  packed_upload::part token_part_, place_part_, end_part_, target_part_, attention_part_;
};

/// Those that feed one token go together, as do those that begin with the words of a group, and all others.
struct tts_llama::sorted_rows {
  enum class kind { token, words, other };

  std::vector<std::size_t> order; ///< where each row was
  std::vector<row> rows;
  std::vector<kind> kinds;

  static kind kind_of(const row& of) {
    if (!of.embeddings.defined()) return of.tokens.size() == 1 ? kind::token : kind::other;
    return of.tokens.empty() && of.rows() <= longest_group ? kind::words : kind::other;
  }
};

tts_llama::sorted_rows tts_llama::sort(std::span<const row> rows) const {
  sorted_rows made;
  made.order.resize(rows.size());
  std::iota(made.order.begin(), made.order.end(), std::size_t{0});
  std::ranges::stable_sort(made.order, {}, [&](std::size_t i) { return sorted_rows::kind_of(rows[i]); });
  for (const auto i : made.order) {
    made.rows.push_back(rows[i]);
    made.kinds.push_back(sorted_rows::kind_of(rows[i]));
  }
  return made;
}

/// float32 [rows, codes]
at::Tensor tts_llama::logits_of(const sorted_rows& of) const {
  if (!spare_) spare_ = rows_->take(spare_rows);
  std::vector<at::Tensor> parts;
  for (std::size_t begin = 0, end = 0; begin < of.rows.size(); begin = end) {
    while (end < of.rows.size() && of.kinds[end] == of.kinds[begin]) ++end;
    const auto group = std::span(of.rows).subspan(begin, end - begin);
    const bool by_graph = of.kinds[begin] != sorted_rows::kind::other && chooses();
    parts.push_back(by_graph ? logits_by_graph(group) : logits(extend_here(group)));
  }
  return (parts.size() == 1 ? parts.front() : at::cat(parts)).to(at::kFloat).contiguous();
}

std::vector<at::Tensor> tts_llama::logits_on_device(std::span<const row> rows) const {
  make_room(rows);
  const auto sorted = sort(rows);
  const auto all = download(logits_of(sorted));
  std::vector<at::Tensor> result(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) result[sorted.order[i]] = all[static_cast<std::int64_t>(i)];
  return result;
}

bool tts_llama::chooses() const {
  return rows_ && varlen_attention::is_one_call(final_norm_.device(), dtype_);
}

std::vector<std::vector<std::int64_t>> tts_llama::choose(std::span<const row> rows, std::span<const tts_choice> how,
                                                         std::int64_t steps) const {
  return undone_if_it_throws(rows, [&] { return choose_on_device(rows, how, steps); });
}

std::vector<std::vector<std::int64_t>>
tts_llama::choose_on_device(std::span<const row> rows, std::span<const tts_choice> how, std::int64_t steps) const {
  make_room(rows, steps - 1);
  auto sorted = sort(rows);
  std::vector<tts_choice> choices;
  choices.reserve(how.size());
  for (const auto i : sorted.order) choices.push_back(how[i]);
  packed_upload numbers;
  device_draw draw(choices, codes(), steps, numbers);
  numbers.send(final_norm_.device());
  draw.use(numbers);
  auto tokens = draw.next(logits_of(sorted));
  for (std::int64_t step = 1; step < steps; ++step) {
    for (auto& row : sorted.rows) {
      row.position += row.rows();
      row.embeddings.reset();
      row.tokens.assign(1, 0); // which one is known on the device
      ++row.past->length_;
    }
    tokens = draw.next(logits_by_graph(sorted.rows, tokens).to(at::kFloat));
  }
  const auto all = download(draw.chosen());
  std::vector<std::vector<std::int64_t>> result(rows.size());
  const auto* from = all.const_data_ptr<std::int64_t>();
  for (std::size_t i = 0; i < rows.size(); ++i, from += steps) result[sorted.order[i]].assign(from, from + steps);
  return result;
}

/// All rows are tokens, one each, or all are words, at most `longest_group` each. `tokens`: int64 [rows] on the device, if
/// they are known only there.
at::Tensor tts_llama::logits_by_graph(std::span<const row> rows, const at::Tensor& tokens) const {
  const bool by_tokens = !rows.front().embeddings.defined();
  std::int64_t fresh = 0, longest = 1;
  for (const auto& row : rows) {
    fresh += row.rows();
    longest = std::max(longest, row.past->length());
  }
  const auto count = std::ssize(rows);
  padding more;
  if (by_tokens) {
    more.runs = more.rows = padded_count(count) - count;
  } else {
    more.runs = padded_count(count + 1) - count;
    more.rows = (fresh + more.runs + row_step - 1) / row_step * row_step - fresh;
  }
  more.first = spare_->first();
  PARLEY_ASSERT(more.rows <= spare_rows, "padding has rows of its own");
  more.bounds.queries = by_tokens ? 1 : longest_group;
  more.bounds.keys =
      static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(longest, shortest_bound))));
  const auto at = std::make_shared<plan>(rows, final_norm_.device(), more);
  std::vector<at::Tensor> inputs;
  if (tokens.defined()) inputs.push_back(at::constant_pad_nd(tokens, {0, more.rows}));
  if (!by_tokens) {
    std::vector<at::Tensor> words;
    for (const auto& row : rows) words.push_back(row.embeddings);
    words.push_back(at::zeros({more.rows, width()}, final_norm_.options()));
    inputs.push_back(at::cat(words));
    if (inputs.back().size(1) != width())
      throw std::runtime_error("the rows of the speech tokens do not fit their model");
  }
  const auto* codes = rows.front().codes;
  const auto work = [this, at, codes, by_tokens](const packed_upload& numbers, std::span<const at::Tensor> given) {
    at->use(numbers);
    const auto& in = given.empty() ? at->tokens : given.front();
    const auto x = extend_together(by_tokens ? codes->codes(in) : in, *at);
    return logits(norm(x.index_select(0, at->last).to(at::kFloat), final_norm_));
  };
  const graph_cache::key shape{tokens.defined() ? 2
                               : by_tokens      ? 0
                                                : 1,
                               count + more.runs,
                               fresh + more.rows,
                               more.bounds.keys,
                               rows_->layer(0).size(0),
                               reinterpret_cast<std::int64_t>(rows_->layer(0).const_data_ptr()),
                               reinterpret_cast<std::int64_t>(codes)};
  auto numbers = at->numbers;
  return graphs_.run(shape, std::move(numbers), inputs, final_norm_.device(), work).narrow(0, 0, count);
}

at::Tensor tts_llama::extend(std::span<const row> rows) const {
  if (rows_) make_room(rows);
  return extend_here(rows);
}

/// Caches on a device already include the new rows.
at::Tensor tts_llama::extend_here(std::span<const row> rows) const {
  const auto device = final_norm_.device();
  plan at(rows, device);
  at.numbers.send(device);
  at.use(at.numbers);
  auto x = embedded(rows, at.tokens);
  if (x.size(1) != width()) throw std::runtime_error("the rows of the speech tokens do not fit their model");
  x = rows_ ? extend_together(x, at) : extend_on_cpu(x, rows, at);
  return norm(x.index_select(0, at.last).to(at::kFloat), final_norm_);
}

at::Tensor tts_llama::extend_on_cpu(at::Tensor x, std::span<const row> rows, const plan& at) const {
  const auto [cos, sin] = angles_of(at.positions);
  const auto one_row = at::empty({config_.kv_heads, 1, head_dim_}, x.options());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].past->extend(layers_.size(), at.lengths[i], one_row);
  const walk on(rows, at.lengths, cos, sin, config_, head_dim_);
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    const auto& layer = layers_[n];
    x = x + layer.out(on.attend(n, layer.query_key_value(on.norm(x, layer.attention_norm))));
    x = x + layer.down(on.gate(layer.gate_up(on.norm(x, layer.feed_norm))));
  }
  return x;
}

/// Makes the new rows part of the caches, which then have room for so many `later`; those that are full move, all at once.
void tts_llama::make_room(std::span<const row> rows, std::int64_t later) const {
  std::vector<std::shared_ptr<const tts_rows::range>> moved(rows.size());
  std::vector<std::int64_t> from, to;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& past = *rows[i].past;
    if (past.has_room(rows[i].rows() + later)) continue;
    moved[i] = rows_->take(past.wanted_for(rows[i].rows() + later));
    for (std::int64_t n = 0; n < past.length_; ++n) {
      from.push_back(past.rows_->first() + past.begin_ + n);
      to.push_back(moved[i]->first() + n);
    }
  }
  if (!from.empty()) {
    packed_upload numbers;
    const auto from_part = numbers.add(from), to_part = numbers.add(to);
    numbers.send(final_norm_.device());
    rows_->copy(numbers[from_part], numbers[to_part]);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    auto& past = *rows[i].past;
    if (moved[i]) {
      past.rows_ = std::move(moved[i]);
      past.begin_ = 0;
    }
    past.length_ += rows[i].rows();
  }
}

at::Tensor tts_llama::extend_together(at::Tensor x, const plan& at) const {
  x = x.to(dtype_);
  const std::int64_t total = x.size(0), half = head_dim_ / 2, rotating = config_.heads + config_.kv_heads;
  const auto angle = at.positions.unsqueeze(1) * frequencies_;
  const auto cos = at::cos(angle), sin = at::sin(angle);
  const auto both_cos = at::cat({cos, cos}, 1).unsqueeze(1), both_sin = at::cat({-sin, sin}, 1).unsqueeze(1);
  for (std::size_t n = 0; n < layers_.size(); ++n) {
    const auto& layer = layers_[n];
    const auto parts = layer.query_key_value(norm(x, layer.attention_norm)).view({total, -1, head_dim_});
    const auto turned = parts.narrow(1, 0, rotating); // in place: queries and keys
    const auto swapped = at::cat({turned.narrow(2, half, half), turned.narrow(2, 0, half)}, 2);
    turned.mul_(both_cos).addcmul_(swapped, both_sin);
    auto past = rows_->layer(n);
    past.index_copy_(0, at.targets, parts.narrow(1, config_.heads, 2 * config_.kv_heads));
    const auto y = at.attention->run(parts.narrow(1, 0, config_.heads), past.narrow(1, 0, config_.kv_heads),
                                     past.narrow(1, config_.kv_heads, config_.kv_heads));
    x = at::addmm(x, y.reshape({total, -1}), layer.out.weight.t());
    const auto halves = layer.gate_up(norm(x, layer.feed_norm)).chunk(2, 1);
    x = at::addmm(x, at::silu(halves[0]).mul_(halves[1]), layer.down.weight.t());
  }
  return x;
}

} // namespace parley::inference::speech
