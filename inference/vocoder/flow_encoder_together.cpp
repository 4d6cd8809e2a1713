#include "inference/vocoder/flow_encoder_places.hpp"
#include "inference/vocoder/ragged.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

// The encoder's parts that are done for all sequences at once on an accelerator, where each call costs as much for many
// as for one (the CPU's are in flow_encoder.cpp).
namespace parley::inference::speech {
namespace {

constexpr std::int64_t upsampling = 2;

/// [1, width, n] of each stream → [streams * n, width]
at::Tensor contexts(std::span<const flow_encoder::job> jobs, at::Tensor flow_encoder::cache::*which, std::int64_t n,
                    const at::Tensor& like) {
  std::vector<at::Tensor> all;
  for (const auto& job : jobs) {
    const auto& past = (*job.stream).*which;
    all.push_back(past.defined() ? past.squeeze(0).t() : at::zeros({n, like.size(1)}, like.options()));
  }
  return at::cat(all, 0);
}

void set_contexts(std::span<const flow_encoder::job> jobs, at::Tensor flow_encoder::cache::*which,
                  const at::Tensor& rows) {
  const auto each = rows.chunk(std::ssize(jobs), 0);
  for (std::size_t i = 0; i < jobs.size(); ++i) (*jobs[i].stream).*which = each[i].t().unsqueeze(0);
}

} // namespace

void flow_encoder::padded_rows::plan(std::span<const std::int64_t> lengths, std::span<const std::int64_t> past,
                                     packed_upload& numbers) {
  sequences = std::ssize(lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    fresh = std::max(fresh, lengths[i]);
    total = std::max(total, past[i] + lengths[i]);
  }
  std::vector<std::int64_t> query_rows, key_rows, result_rows, missing;
  std::int64_t first_query = 0, first_key = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto own = lengths[i], all = past[i] + own;
    for (std::int64_t n = 0; n < fresh; ++n)
      query_rows.push_back(first_query + std::max<std::int64_t>(0, n - (fresh - own)));
    for (std::int64_t n = 0; n < total; ++n)
      key_rows.push_back(first_key + std::max<std::int64_t>(0, n - (total - all)));
    for (std::int64_t n = 0; n < own; ++n) result_rows.push_back(static_cast<std::int64_t>(i + 1) * fresh - own + n);
    missing.push_back(total - all);
    first_query += own;
    first_key += all;
  }
  query_part_ = numbers.add(query_rows);
  key_part_ = numbers.add(key_rows);
  result_part_ = numbers.add(result_rows);
  missing_part_ = numbers.add(missing);
}

void flow_encoder::padded_rows::use(const packed_upload& sent) {
  queries = sent[query_part_];
  keys = sent[key_part_];
  results = sent[result_part_];
  const auto missing = sent[missing_part_];
  hidden = at::arange(total, missing.options()) < missing.view({-1, 1, 1, 1});
}

void flow_encoder::places::windows::use(const packed_upload& sent) {
  rows = sent[row_part];
  ends = sent[end_part];
}

flow_encoder::places::places(const flow_encoder& model, std::span<const job> jobs, at::Device device,
                             packed_upload& numbers)
    : together_(!device.is_cpu()) {
  std::vector<std::int64_t> past, mel_past;
  for (const auto& job : jobs) {
    tokens_.push_back(job.tokens);
    rows_.push_back(job.rows());
    mel_rows_.push_back(upsampling * job.rows());
    const auto& layers = job.stream->attention;
    past.push_back(layers.empty() ? 0 : layers.front().rows());
    mel_past.push_back(layers.empty() ? 0 : layers.back().rows());
  }
  if (!together_) return;
  auto plan = [&](auto row, std::span<const std::int64_t> lengths, const padded_conv& conv) {
    std::vector<std::int64_t> windows, ends;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      for (std::int64_t n = 0; n < lengths[i]; ++n)
        for (std::int64_t k = 0; k < conv.kernel(); ++k) windows.push_back(row(i, n + k));
      for (std::int64_t n = 0; n < conv.kernel() - 1; ++n) ends.push_back(row(i, lengths[i] + n));
    }
    return places::windows{numbers.add(windows), numbers.add(ends), {}, {}};
  };
  // The first convolution looks ahead: of a sequence that ends, behind its last token, at zeros behind all tokens.
  const rows_after_context token(0, tokens_);
  look_first_ = plan([&](std::size_t i, std::int64_t n) { return n < tokens_[i] ? token(i, n) : token.rows(); }, rows_,
                     model.lookahead_first_);
  const rows_after_context looked(model.lookahead_second_.kernel() - 1, rows_);
  look_second_ = plan(looked, rows_, model.lookahead_second_);
  // Each token's row stands for two at mel rate; the context is at mel rate already.
  const auto context = model.up_conv_.kernel() - 1;
  const rows_after_context raised(context, rows_);
  up_ = plan(
      [&](std::size_t i, std::int64_t n) { return raised(i, n < context ? n : context + (n - context) / upsampling); },
      mel_rows_, model.up_conv_);
  std::vector<std::int64_t> own;
  for (std::size_t i = 0; i < rows_.size(); ++i)
    for (std::int64_t n = 0; n < rows_[i]; ++n) own.push_back(token(i, n));
  own_part_ = numbers.add(own);
  token_attention_.plan(rows_, past, numbers);
  mel_attention_.plan(mel_rows_, mel_past, numbers);
}

void flow_encoder::places::use(const packed_upload& sent) {
  if (!together_) return;
  for (auto* each : {&look_first_, &look_second_, &up_}) each->use(sent);
  own_ = sent[own_part_];
  token_attention_.use(sent);
  mel_attention_.use(sent);
}

at::Tensor flow_encoder::look_ahead_together(const at::Tensor& x, const places& at, std::span<const job> jobs) const {
  const auto all = at::cat({x, at::zeros({1, x.size(1)}, x.options())}, 0);
  const auto ahead = at::leaky_relu(lookahead_first_windows_(all, at.look_first_.rows));
  const auto context = lookahead_second_.kernel() - 1;
  const auto joined = at::cat({contexts(jobs, &cache::lookahead, context, x), ahead}, 0);
  set_contexts(jobs, &cache::lookahead, joined.index_select(0, at.look_second_.ends));
  return lookahead_second_windows_(joined, at.look_second_.rows) + all.index_select(0, at.own_);
}

at::Tensor flow_encoder::upsample_together(const at::Tensor& x, const places& at, std::span<const job> jobs) const {
  const auto context = up_conv_.kernel() - 1;
  const auto joined = at::cat({contexts(jobs, &cache::upsampled, context, x), x}, 0);
  set_contexts(jobs, &cache::upsampled, joined.index_select(0, at.up_.ends));
  return up_windows_(joined, at.up_.rows);
}

/// q, kv [new rows, heads, …] of all sequences → [new rows, heads * d]
at::Tensor flow_encoder::layer::attend_together(const at::Tensor& q, const at::Tensor& kv, const padded_rows& at,
                                                std::span<const std::int64_t> lengths, std::span<const job> jobs,
                                                std::size_t index) const {
  const auto heads = q.size(1), d = q.size(2);
  const auto fresh = cut(kv, lengths, 0);
  std::vector<at::Tensor> pieces;
  std::vector<std::int64_t> totals;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& past = jobs[i].stream->attention[index];
    past.push_back(fresh[i]);
    totals.push_back(past.rows());
    pieces.insert(pieces.end(), past.pieces().begin(), past.pieces().end());
  }
  const auto all = at::cat(pieces, 0);
  const auto each = cut(all, totals, 0);
  for (std::size_t i = 0; i < jobs.size(); ++i) jobs[i].stream->attention[index].replace(each[i]);

  const auto queries = q.index_select(0, at.queries);
  const auto padded = all.index_select(0, at.keys).view({at.sequences, at.total, heads, 2 * d}).transpose(1, 2);
  const auto by_distance =
      at::matmul((queries + position_bias).transpose(0, 1), positions(at.total, at.fresh).transpose(1, 2)).contiguous();
  // As in `attend`, for each head and sequence.
  const auto columns = by_distance.size(2);
  const auto shifted = by_distance.as_strided({at.sequences, heads, at.fresh, at.total},
                                              {at.fresh * columns, at.sequences * at.fresh * columns, columns - 1, 1},
                                              by_distance.storage_offset() + at.fresh - 1);
  const auto scores = (shifted / std::sqrt(static_cast<double>(d))).masked_fill_(at.hidden, -INFINITY);
  const auto content = (queries + content_bias).view({at.sequences, at.fresh, heads, d}).transpose(1, 2);
  const auto y = at::scaled_dot_product_attention(content, padded.narrow(3, 0, d), padded.narrow(3, d, d), scores);
  return y.transpose(1, 2).reshape({at.sequences * at.fresh, heads * d}).index_select(0, at.results);
}

} // namespace parley::inference::speech
