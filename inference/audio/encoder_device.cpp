#include "inference/audio/encoder.hpp"
#include "inference/kernels/packed_upload.hpp"
#include "inference/kernels/varlen_attention.hpp"

#include <ATen/ATen.h>

#include <algorithm>

// Streaming on a device: the same operators whatever the number of streams, and one upload.
namespace parley::inference::audio {

namespace {

/// Which rows a convolution with kernel 3 multiplies, three for each of its results. Row 0 is zero, those of the streams
/// follow one another behind it.
class convolution_rows {
public:
  /// Results [begin, end) of the next stream, which has `rows` rows; result i is centred at row i * stride.
  void add(std::int64_t rows, std::int64_t stride, std::int64_t begin, std::int64_t end) {
    for (auto i = begin; i < end; ++i)
      for (auto row = i * stride - 1; row <= i * stride + 1; ++row)
        index_.push_back(static_cast<std::int32_t>(row < 0 || row >= rows ? 0 : first_ + row));
    first_ += rows;
  }

  std::span<const std::int32_t> index() const { return index_; }

private:
  std::int64_t first_ = 1;
  std::vector<std::int32_t> index_;
};

at::Tensor convolve3(const at::Tensor& rows, const at::Tensor& index, const at::Tensor& weight,
                     const at::Tensor& bias) {
  const auto windows = rows.index_select(0, index).view({-1, 3 * rows.size(1)});
  return at::gelu(at::linear(windows, weight, bias));
}

} // namespace

std::vector<at::Tensor> encoder::stream_on_device(std::span<const stream_chunk> chunks,
                                                  std::span<const kept_frames> kept, encoder_trace* trace) const {
  const auto& pool = chunks.front().cache->slot->pool();
  convolution_rows first, second;
  std::vector<at::Tensor> mels{at::zeros({1, config_.mel_bins})};
  std::vector<std::int32_t> places;
  std::vector<std::int64_t> targets, lengths;
  std::vector<attention_run> runs;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const auto& chunk = chunks[i];
    const auto frames = chunk.mel.size(0), before = chunk.cache->length, count = kept[i].count,
               row = chunk.cache->slot->first_row();
    mels.push_back(chunk.mel);
    first.add(frames, 1, 0, frames);
    second.add(frames, 2, kept[i].first, kept[i].first + count);
    for (auto place = before; place < before + count; ++place) {
      places.push_back(static_cast<std::int32_t>(place));
      targets.push_back(row + place);
    }
    lengths.push_back(count);
    runs.push_back({count, row, before + count});
  }
  varlen_attention attention(runs, varlen_attention::mask::none);
  packed_upload numbers;
  const auto sound = numbers.add(at::cat(mels).to(positions_.scalar_type()));
  const auto first_rows = numbers.add(first.index()), second_rows = numbers.add(second.index()),
             place_rows = numbers.add(places), target_rows = numbers.add(targets),
             attended = numbers.add(attention.numbers());
  numbers.send(positions_.device());
  attention.use(numbers[attended]);

  const auto mel = numbers[sound].view({-1, config_.mel_bins});
  const auto convolved = at::cat({zero_row_, convolve3(mel, numbers[first_rows], conv1_by_frame_, conv1_bias_)});
  auto x = convolve3(convolved, numbers[second_rows], conv2_by_frame_, conv2_bias_);
  if (trace != nullptr) trace->after_conv = x;
  x = x + positions_.index_select(0, numbers[place_rows]);
  const auto target = numbers[target_rows];
  const auto attend = [&](std::size_t layer, const at::Tensor& qkv) {
    auto keys = pool.keys()[static_cast<std::int64_t>(layer)], values = pool.values()[static_cast<std::int64_t>(layer)];
    keys.index_copy_(0, target, qkv.select(1, 1));
    values.index_copy_(0, target, qkv.select(1, 2));
    return attention.run(qkv.select(1, 0), keys, values).flatten(1);
  };
  return run_layers(x, attend, trace).split_with_sizes(lengths);
}

} // namespace parley::inference::audio
