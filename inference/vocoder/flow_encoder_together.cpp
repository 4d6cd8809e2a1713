#include "inference/speech/ragged.hpp"
#include "inference/vocoder/flow_encoder_places.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

// The encoder's parts that are done for all sequences at once on an accelerator, where each call costs as much for many
// as for one (the CPU's are in flow_encoder.cpp).
namespace parley::inference::speech {
namespace {

constexpr std::int64_t upsampling = 2;

template<class Part>
std::vector<Part*> parts_of(std::span<const flow_encoder::job> jobs, Part flow_encoder::remembered::*which) {
  std::vector<Part*> parts;
  for (const auto& job : jobs) parts.push_back(&((*job.shared).*which));
  return parts;
}

constexpr row_writes::how oldest_first{row_writes::layout::scattered, row_writes::side::back};

} // namespace

void flow_encoder::padded_rows::plan(std::span<const std::int64_t> lengths, std::span<row_history* const> histories,
                                     packed_upload& numbers) {
  sequences = std::ssize(lengths);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    fresh = std::max(fresh, lengths[i]);
    total = std::max(total, histories[i]->rows());
  }
  std::vector<std::int64_t> query_rows, key_rows, result_rows, missing;
  std::int64_t first_query = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto where = histories[i]->where();
    const auto own = lengths[i], none = total - std::ssize(where);
    for (std::int64_t n = 0; n < fresh; ++n)
      query_rows.push_back(first_query + std::max<std::int64_t>(0, n - (fresh - own)));
    key_rows.insert(key_rows.end(), static_cast<std::size_t>(none), where.front());
    key_rows.insert(key_rows.end(), where.begin(), where.end());
    for (std::int64_t n = 0; n < own; ++n) result_rows.push_back(static_cast<std::int64_t>(i + 1) * fresh - own + n);
    missing.push_back(none);
    first_query += own;
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

flow_encoder::memory flow_encoder::make_memory(std::int64_t spare) const {
  auto pool = [&](const std::vector<layer>& layers, std::int64_t more) {
    std::vector<std::int64_t> row{0, 0};
    if (!layers.empty()) row = {layers.front().content_bias.size(0), 2 * layers.front().content_bias.size(1)};
    for (const auto& each : layers)
      if (each.content_bias.sizes() != layers.front().content_bias.sizes())
        throw std::runtime_error("the layers of the flow's encoder differ in their heads");
    return row_pool(std::vector{std::ssize(layers)}, row, after_norm_.weight.options(), more);
  };
  auto contexts = [&](const padded_conv& conv) {
    return row_contexts(1, conv.kernel() - 1, width_, after_norm_.weight.options());
  };
  return {pool(token_layers_, spare / upsampling), pool(mel_layers_, spare), contexts(lookahead_second_),
          contexts(up_conv_)};
}

flow_encoder::places::shared::shared(std::span<const job> jobs, const places& at)
    : token_rows(at.memory_->token_rows, parts_of(jobs, &remembered::token_rows), at.rows_, oldest_first),
      mel_rows(at.memory_->mel_rows, parts_of(jobs, &remembered::mel_rows), at.mel_rows_, oldest_first),
      looked(at.memory_->looked, parts_of(jobs, &remembered::looked)),
      raised(at.memory_->raised, parts_of(jobs, &remembered::raised)) {}

flow_encoder::places::places(const flow_encoder& model, std::span<const job> jobs, const memory* memory,
                             packed_upload& numbers)
    : memory_(memory) {
  for (const auto& job : jobs) {
    tokens_.push_back(job.tokens);
    rows_.push_back(job.rows());
    mel_rows_.push_back(upsampling * job.rows());
  }
  if (memory_ == nullptr) return;
  shared_.emplace(jobs, *this);
  for (auto* each : {&shared_->token_rows, &shared_->mel_rows}) each->add_to(numbers);
  for (auto* each : {&shared_->looked, &shared_->raised}) each->add_to(numbers);
  token_attention_.plan(rows_, parts_of(jobs, &remembered::token_rows), numbers);
  mel_attention_.plan(mel_rows_, parts_of(jobs, &remembered::mel_rows), numbers);
  plan_windows(model, numbers);
}

void flow_encoder::places::plan_windows(const flow_encoder& model, packed_upload& numbers) {
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
}

void flow_encoder::places::move() const {
  if (!shared_) return;
  for (const auto* each : {&shared_->token_rows, &shared_->mel_rows}) each->move();
  for (const auto* each : {&shared_->looked, &shared_->raised}) each->move();
}

void flow_encoder::places::use(const packed_upload& sent) {
  if (!shared_) return;
  for (auto* each : {&shared_->token_rows, &shared_->mel_rows}) each->use(sent);
  for (auto* each : {&shared_->looked, &shared_->raised}) each->use(sent);
  for (auto* each : {&look_first_, &look_second_, &up_}) each->use(sent);
  own_ = sent[own_part_];
  token_attention_.use(sent);
  mel_attention_.use(sent);
}

at::Tensor flow_encoder::look_ahead_together(const at::Tensor& x, const places& at) const {
  const auto all = at::cat({x, at::zeros({1, x.size(1)}, x.options())}, 0);
  const auto ahead = at::leaky_relu(lookahead_first_windows_(all, at.look_first_.rows));
  const auto past = at.memory_->looked.tensor().select(0, 0);
  const auto joined = at::cat({past.index_select(0, at.shared_->looked.sources()), ahead}, 0);
  past.index_copy_(0, at.shared_->looked.targets(), joined.index_select(0, at.look_second_.ends));
  return lookahead_second_windows_(joined, at.look_second_.rows) + all.index_select(0, at.own_);
}

at::Tensor flow_encoder::upsample_together(const at::Tensor& x, const places& at) const {
  const auto past = at.memory_->raised.tensor().select(0, 0);
  const auto joined = at::cat({past.index_select(0, at.shared_->raised.sources()), x}, 0);
  past.index_copy_(0, at.shared_->raised.targets(), joined.index_select(0, at.up_.ends));
  return up_windows_(joined, at.up_.rows);
}

/// q, kv [new rows, heads, …] of all sequences → [new rows, heads * d]
at::Tensor flow_encoder::layer::attend_together(const at::Tensor& q, const at::Tensor& kv, const places& in,
                                                bool mel_rate, std::size_t index) const {
  const auto heads = q.size(1), d = q.size(2);
  const auto& at = mel_rate ? in.mel_attention_ : in.token_attention_;
  const auto& pool = mel_rate ? in.memory_->mel_rows : in.memory_->token_rows;
  const auto& writes = mel_rate ? in.shared_->mel_rows : in.shared_->token_rows;
  const auto before = mel_rate ? in.memory_->token_rows.part(0).size(0) : 0;          // the token layers come first
  const auto all = pool.part(0).select(0, static_cast<std::int64_t>(index) - before); // [rows, heads, k | v]
  all.index_copy_(0, writes.targets(), kv);

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
