#include "inference/vocoder/dit.hpp"
#include "inference/vocoder/dit_rows.hpp"

#include <ATen/ATen.h>

#include <stdexcept>
#include <utility>

// The estimator on an accelerator, where an operator costs the host as much for one stream as for all: what streams
// remember lies in memory that they share, and nothing here is done stream by stream.
namespace parley::inference::speech {
namespace {

std::vector<std::int64_t> lengths_of(std::span<const dit::shared_job> sequences) {
  std::vector<std::int64_t> lengths;
  for (const auto& job : sequences) lengths.push_back(job.rows);
  return lengths;
}

template<class Part>
std::vector<Part*> parts_of(std::span<const dit::shared_job> sequences, Part dit::remembered::*which) {
  std::vector<Part*> parts;
  for (const auto& job : sequences) parts.push_back(&((*job.stream).*which));
  return parts;
}

/// Of histories that count their new rows already, then of the padding, whose last sequence takes what is left.
std::vector<attention_run> runs_of(std::span<const dit::shared_job> sequences, const dit::padding& more) {
  std::vector<attention_run> runs;
  for (const auto& [stream, rows] : sequences)
    runs.push_back({rows, stream->keys_values.begin(), stream->keys_values.rows()});
  for (std::int64_t i = 0; i < more.sequences; ++i) {
    const auto rows = i + 1 < more.sequences ? 1 : more.rows - i;
    runs.push_back({rows, more.first_row + i, rows});
  }
  return runs;
}

} // namespace

dit::memory dit::make_memory(int steps, std::int64_t spare) const {
  if (blocks_.empty()) throw std::runtime_error("the flow's estimator has no blocks");
  const auto& first = blocks_.front();
  for (const auto& block : blocks_)
    if (block.heads() != first.heads() || block.head_dim() != first.head_dim())
      throw std::runtime_error("the blocks of the flow's estimator differ in their heads");
  const auto blocks = std::ssize(blocks_);
  const std::vector<std::int64_t> depths(static_cast<std::size_t>(steps), blocks);
  const auto options = in_.weight.options().dtype(dtype_);
  return {row_pool(depths, {2, first.heads(), 2 * first.head_dim()}, options, spare),
          row_contexts(steps * blocks * 2, context_rows, 2 * in_.weight.size(0), options)};
}

dit::shared_places::shared_places(std::span<const shared_job> sequences, const memory& memory, packed_upload& numbers,
                                  const padding& more)
    : keys_values_(memory.keys_values, parts_of(sequences, &remembered::keys_values), lengths_of(sequences),
                   {row_writes::layout::dense, row_writes::side::front}),
      inputs_(memory.inputs, parts_of(sequences, &remembered::inputs)),
      attention_(runs_of(sequences, more), varlen_attention::mask::none, more.attention) {
  keys_values_.pad(more.first_row, more.rows);
  keys_values_.add_to(numbers);
  inputs_.pad(more.sequences, more.first_input);
  inputs_.add_to(numbers);
  auto lengths = lengths_of(sequences);
  for (std::int64_t i = 0; i < more.sequences; ++i) lengths.push_back(i + 1 < more.sequences ? 1 : more.rows - i);
  const auto rows = find_windows(context_rows, lengths);
  window_part_ = numbers.add(rows.windows);
  end_part_ = numbers.add(rows.ends);
  attention_part_ = numbers.add(attention_.numbers());
}

void dit::shared_places::move() const {
  keys_values_.move();
  inputs_.move();
}

void dit::shared_places::use(const packed_upload& sent) {
  keys_values_.use(sent);
  inputs_.use(sent);
  attention_.use(sent[attention_part_]);
  windows_ = sent[window_part_];
  ends_ = sent[end_part_];
}

/// x [2, N, width], keys_values [rows, 2, heads, k | v]. A sequence's two guidance rows have their keys in the same rows,
/// so they attend as heads side by side.
at::Tensor dit::block::attend(const at::Tensor& x, const shared_places& at, const at::Tensor& keys_values) const {
  const auto d = head_dim();
  // 3 x [N, 2, heads, d]
  const auto parts = query_key_value(x).view({2, -1, 3, heads(), d}).transpose(0, 1).unbind(2);
  const auto keys = keys_values.narrow(3, 0, d), values = keys_values.narrow(3, d, d);
  const auto& targets = at.keys_values_.targets();
  keys.index_copy_(0, targets, key_norm(parts[1]));
  values.index_copy_(0, targets, parts[2]);
  const auto all = keys_values.flatten(1, 2);
  const auto attended = at.attention_.run(query_norm(parts[0]).flatten(1, 2), all.narrow(2, 0, d), all.narrow(2, d, d));
  return attention_out(attended.view({x.size(1), 2, -1})).transpose(0, 1);
}

/// x [2, N, width] before its norm, m: its modulation, inputs [2, rows, 2 * width]. The inputs of both convolutions lie
/// side by side behind the earlier ones: [2, earlier rows | N, 2 * width].
at::Tensor dit::block::convolve(const at::Tensor& x, const std::vector<at::Tensor>& m, const shared_places& at,
                                const at::Tensor& inputs) const {
  const auto width = x.size(2), fresh = x.size(1), earlier = at.inputs_.sources().size(0);
  const auto both = at::empty({2, earlier + fresh, 2 * width}, x.options());
  auto before = both.narrow(1, 0, earlier);
  at::index_select_out(before, inputs, 1, at.inputs_.sources());
  const auto first = both.narrow(2, 0, width), second = both.narrow(2, width, width);
  auto into = first.narrow(1, earlier, fresh);
  at::addcmul_out(into, m[0], at::layer_norm(x, {width}, {}, {}, 1e-6), m[1]);
  into = second.narrow(1, earlier, fresh);
  at::mish_out(into, conv_norm(conv_first(first.flatten(0, 1), at.windows_).view({2, fresh, width})));
  inputs.index_copy_(1, at.inputs_.targets(), both.flatten(0, 1).index_select(0, at.ends_).view({2, -1, 2 * width}));
  return conv_second(second.flatten(0, 1), at.windows_).view({2, fresh, width});
}

at::Tensor dit::run(const at::Tensor& inputs, const modulation& at_time, std::size_t step, const memory& memory,
                    const shared_places& at) const {
  const auto& keys_values = memory.keys_values.part(step);
  const auto first = static_cast<std::int64_t>(2 * step * depth());
  auto h = in_(inputs).to(dtype_);
  for (std::size_t n = 0; n < blocks_.size(); ++n) {
    const auto& block = blocks_[n];
    const auto& m = at_time.blocks[n];
    const auto index = static_cast<std::int64_t>(n);
    h = at::addcmul(h, m[2], block.attend(norm_shift_scale(h, m[0], m[1]), at, keys_values.select(0, index)));
    h = at::addcmul(h, m[8],
                    block.convolve(h, {m[6], m[7]}, at, memory.inputs.tensor().narrow(0, first + 2 * index, 2)));
    h = at::addcmul(h, m[5], block.feed(norm_shift_scale(h, m[3], m[4])));
  }
  return out_(norm_shift_scale(h.to(in_.weight.scalar_type()), at_time.last[0], at_time.last[1]));
}

} // namespace parley::inference::speech
