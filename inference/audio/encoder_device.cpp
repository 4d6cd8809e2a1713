#include "inference/audio/encoder.hpp"
#include "inference/kernels/device_graph.hpp"
#include "inference/kernels/packed_upload.hpp"
#include "inference/kernels/varlen_attention.hpp"

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <utility>

// Streaming on a device: the same operators whatever the number of streams, one upload, and one launch if the streams'
// chunks are alike.
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

/// One call's numbers, and where they lie in the upload.
struct encoder::device_call {
  packed_upload::part sound, first, second, places, targets, attended;
  varlen_attention attention;
  at::Tensor keys, values; ///< of the pool
};

/// How many dummy streams to add to a call so that calls come in few shapes and can be graphs. Nothing if this one cannot:
/// its chunks differ, or the first stream has no room. Dummies write after the first stream's rows, where its next chunk
/// will overwrite them.
std::optional<std::int64_t> encoder::padding_of(std::span<const stream_chunk> chunks,
                                                std::span<const kept_frames> kept) const {
  const auto alike = [&](const stream_chunk& chunk, const kept_frames& frames) {
    return chunk.mel.size(0) == chunks.front().mel.size(0) && frames.first == kept.front().first &&
           frames.count == kept.front().count;
  };
  for (std::size_t i = 0; i < chunks.size(); ++i)
    if (!alike(chunks[i], kept[i])) return std::nullopt;
  if (!varlen_attention::is_one_call(positions_.device(), positions_.scalar_type())) return std::nullopt;
  const auto more = padded_count(std::ssize(chunks)) - std::ssize(chunks);
  if (more > 0 && chunks.front().cache->length + 2 * kept.front().count > config_.max_positions) return std::nullopt;
  return more;
}

std::vector<at::Tensor> encoder::stream_on_device(std::span<const stream_chunk> chunks,
                                                  std::span<const kept_frames> kept, encoder_trace* trace) const {
  const auto padding = trace == nullptr ? padding_of(chunks, kept) : std::nullopt;
  const auto& pool = chunks.front().cache->slot->pool();
  convolution_rows first, second;
  std::vector<at::Tensor> mels{at::zeros({1, config_.mel_bins})};
  std::vector<std::int32_t> places;
  std::vector<std::int64_t> targets, lengths;
  std::vector<attention_run> runs;
  const auto add = [&](const stream_chunk& chunk, const kept_frames& frames, std::int64_t before,
                       std::int64_t first_key) {
    const auto row = chunk.cache->slot->first_row();
    mels.push_back(chunk.mel);
    first.add(chunk.mel.size(0), 1, 0, chunk.mel.size(0));
    second.add(chunk.mel.size(0), 2, frames.first, frames.first + frames.count);
    for (auto place = before; place < before + frames.count; ++place) {
      places.push_back(static_cast<std::int32_t>(place));
      targets.push_back(row + place);
    }
    runs.push_back({frames.count, row + first_key, before + frames.count - first_key});
  };
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    add(chunks[i], kept[i], chunks[i].cache->length, 0);
    lengths.push_back(kept[i].count);
  }
  for (std::int64_t i = 0; i < padding.value_or(0); ++i) {
    const auto behind = chunks.front().cache->length + kept.front().count;
    add(chunks.front(), kept.front(), behind, behind);
  }
  const auto bounds =
      padding ? varlen_attention::bounds{kept.front().count, config_.max_positions} : varlen_attention::bounds{};
  packed_upload numbers;
  const auto there = std::make_shared<device_call>(device_call{numbers.add(at::cat(mels).to(positions_.scalar_type())),
                                                               numbers.add(first.index()),
                                                               numbers.add(second.index()),
                                                               numbers.add(places),
                                                               numbers.add(targets),
                                                               {},
                                                               {runs, varlen_attention::mask::none, bounds},
                                                               pool.keys(),
                                                               pool.values()});
  there->attended = numbers.add(there->attention.numbers());
  if (!padding) {
    numbers.send(positions_.device());
    return run_on_device(*there, numbers, trace).split_with_sizes(lengths);
  }
  const graph_cache::key shape{std::ssize(runs),    chunks.front().mel.size(0),
                               kept.front().first,  kept.front().count,
                               pool.keys().size(1), reinterpret_cast<std::int64_t>(pool.keys().const_data_ptr())};
  const auto work = [this, there](const packed_upload& sent, std::span<const at::Tensor>) {
    return run_on_device(*there, sent, nullptr);
  };
  const auto rows = graphs_.run(shape, std::move(numbers), {}, positions_.device(), work);
  return rows.narrow(0, 0, std::ssize(chunks) * kept.front().count).split_with_sizes(lengths);
}

at::Tensor encoder::run_on_device(device_call& call, const packed_upload& sent, encoder_trace* trace) const {
  call.attention.use(sent[call.attended]);
  const auto mel = sent[call.sound].view({-1, config_.mel_bins});
  const auto convolved = at::cat({zero_row_, convolve3(mel, sent[call.first], conv1_by_frame_, conv1_bias_)});
  auto x = convolve3(convolved, sent[call.second], conv2_by_frame_, conv2_bias_);
  if (trace != nullptr) trace->after_conv = x;
  x = x + positions_.index_select(0, sent[call.places]);
  const auto target = sent[call.targets];
  const auto attend = [&](std::size_t layer, const at::Tensor& qkv) {
    auto keys = call.keys[static_cast<std::int64_t>(layer)], values = call.values[static_cast<std::int64_t>(layer)];
    keys.index_copy_(0, target, qkv.select(1, 1));
    values.index_copy_(0, target, qkv.select(1, 2));
    return call.attention.run(qkv.select(1, 0), keys, values).flatten(1);
  };
  return run_layers(x, attend, trace);
}

} // namespace parley::inference::audio
