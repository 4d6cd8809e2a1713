#include "inference/vocoder/flow.hpp"

#include "inference/speech/ragged.hpp"
#include "inference/vocoder/flow_encoder_places.hpp"
#include "inference/voice/reference_voice.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

namespace parley::inference::speech {
namespace {

/// Past rows that the reference keeps, besides the voice's own.
constexpr std::int64_t history_rows = 100;

std::vector<flow_encoder::job> to_encode(std::span<const flow::job> jobs) {
  std::vector<flow_encoder::job> encoding;
  for (const auto& job : jobs)
    encoding.push_back({&job.stream->encoder, &job.stream->shared.encoder, job.tokens.size(0), job.last});
  return encoding;
}

/// A solver step's part of each job.
std::vector<dit::job> to_estimate(std::span<const flow::job> jobs, std::span<const std::int64_t> rows, std::size_t k) {
  std::vector<dit::job> batch;
  for (std::size_t i = 0; i < jobs.size(); ++i) batch.push_back({&jobs[i].stream->steps[k], rows[i]});
  return batch;
}

std::vector<dit::shared_job> to_estimate(std::span<const flow::job> jobs, std::span<const std::int64_t> rows) {
  std::vector<dit::shared_job> batch;
  for (std::size_t i = 0; i < jobs.size(); ++i) batch.push_back({&jobs[i].stream->shared.estimator, rows[i]});
  return batch;
}

/// What the estimator reads: x [N, bins], for both guidance rows, and context [2, N, 3 * bins].
at::Tensor join(const at::Tensor& x, const at::Tensor& context) {
  return at::cat({x.expand({2, -1, -1}), context}, 2);
}

std::size_t bytes_of(const row_history& rows) {
  return static_cast<std::size_t>(rows.rows()) * rows.row_bytes();
}

std::size_t bytes_of(const kv_history& rows) {
  std::size_t sum = 0;
  for (const auto& piece : rows.pieces()) sum += piece.nbytes();
  return sum;
}

} // namespace

std::size_t flow::state::attention_bytes() const {
  const auto& [told, solved] = shared;
  auto sum = bytes_of(told.token_rows) + bytes_of(told.mel_rows) + bytes_of(solved.keys_values);
  for (const auto& layer : encoder.attention) sum += bytes_of(layer);
  for (const auto& step : steps)
    for (const auto& block : step.attention) sum += bytes_of(block);
  return sum;
}

std::size_t flow::state::context_bytes() const {
  const auto& [told, solved] = shared;
  auto sum = row_contexts::versions * (bytes_of(told.looked) + bytes_of(told.raised) + bytes_of(solved.inputs));
  for (const auto* columns : {&encoder.lookahead, &encoder.upsampled})
    if (columns->defined()) sum += columns->nbytes();
  for (const auto& step : steps)
    for (const auto& block : step.conv) sum += block.nbytes();
  return sum;
}

flow::flow(const tensor_map& weights, const flow_config& config, int steps, at::Tensor noise)
    : embedding_(weights.at("input_embedding.weight", {-1, -1})), speaker_(weights, "spk_embed_affine_layer"),
      encoder_(weights.below("encoder.")), to_mel_(weights, "encoder_proj"),
      estimator_(weights.below("decoder.estimator.")), noise_(noise.to(embedding_.options()).t().contiguous()),
      guidance_(config.guidance) {
  if (steps < 1 || steps > 16) throw std::runtime_error("flow: 1 to 16 solver steps are possible");
  if (noise_.size(1) != estimator_.bins() || to_mel_.weight.size(0) != estimator_.bins())
    throw std::runtime_error(weights.origin() + ": mel bins of encoder, estimator and noise differ");
  // The reference accumulates t in float32.
  const auto grid = 1 - at::cos(at::linspace(0, 1, steps + 1, at::kFloat) * 0.5 * 3.14159265358979323846);
  const auto* span = grid.const_data_ptr<float>();
  float t = span[0], width = span[1] - span[0];
  for (int k = 0; k < steps; ++k) {
    times_.push_back(t);
    widths_.push_back(width);
    t += width;
    if (k + 2 <= steps) width = span[k + 2] - t;
  }
  prepare_steps();
}

void flow::prepare_steps() {
  modulations_.clear();
  for (const auto t : times_)
    modulations_.push_back(estimator_.modulate(estimator_.embed_time(at::full({1}, t, embedding_.options()))));
  if (!noise_.is_cpu()) memory_ = make_memory(rows_beside_voice);
}

flow::memory flow::make_memory(std::int64_t spare) const {
  return {encoder_.make_memory(spare), estimator_.make_memory(steps(), spare)};
}

void flow::use_bfloat16() {
  encoder_.use_bfloat16();
  estimator_.use_bfloat16();
  if (!noise_.is_cpu()) prepare_steps();
}

at::Tensor flow::project_speaker(const at::Tensor& embedding) const {
  const auto wide = embedding.to(embedding_.scalar_type());
  return speaker_(wide / wide.norm().clamp_min(1e-12));
}

/// Where the rows of one call's jobs are: known before it begins, and uploaded at once.
struct flow::plan {
  const memory* in;               ///< null on the CPU
  std::vector<std::int64_t> past; ///< earlier mel rows of each job
  flow_encoder::places encoder;
  std::optional<dit::places> estimator;         ///< on the CPU
  std::shared_ptr<dit::shared_places> together; ///< elsewhere
  std::optional<dit::padding> padding;          ///< of a call that can be a graph
  packed_upload solver;                         ///< what such a call's solver must know
  std::vector<std::int64_t> lengths;            ///< mel rows of each job
  packed_upload::part token_part, noise_part, job_part;
  at::Tensor tokens; ///< of all jobs
  at::Tensor noise;  ///< for each mel row, its row in the noise table
  at::Tensor job;    ///< for each mel row, its job

  /// On the CPU, the streams must have as many steps as the solver. Elsewhere they count their new rows from now on.
  plan(const flow& model, std::span<const flow::job> jobs, const memory* memory, packed_upload& numbers, bool traced)
      : in(memory), past(rows_of(jobs)),
        encoder(model.encoder_, to_encode(jobs), memory == nullptr ? nullptr : &memory->encoder, numbers),
        lengths(encoder.mel_rows().begin(), encoder.mel_rows().end()) {
    for (std::size_t i = 0; i < jobs.size(); ++i)
      if (past[i] + lengths[i] > model.noise_.size(0))
        throw std::out_of_range("flow: the stream is longer than the noise table");
    if (in == nullptr)
      estimator.emplace(to_estimate(jobs, lengths, 0), numbers);
    else
      plan_together(model, jobs, numbers, traced);
    std::vector<std::int64_t> ids, noise_rows, job_of_row;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::span tokens_of(jobs[i].tokens.const_data_ptr<std::int64_t>(),
                                static_cast<std::size_t>(jobs[i].tokens.numel()));
      for (const auto token : tokens_of) ids.push_back(std::max<std::int64_t>(0, token));
      for (std::int64_t n = 0; n < lengths[i]; ++n) {
        noise_rows.push_back(past[i] + n);
        job_of_row.push_back(static_cast<std::int64_t>(i));
      }
    }
    token_part = numbers.add(ids);
    noise_part = numbers.add(noise_rows);
    job_part = numbers.add(job_of_row);
  }

  void plan_together(const flow& model, std::span<const flow::job> jobs, packed_upload& numbers, bool traced) {
    if (!traced && in == model.shared_memory()) padding = model.padding_of(lengths, past);
    together = std::make_shared<dit::shared_places>(to_estimate(jobs, lengths), in->estimator,
                                                    padding ? solver : numbers, padding.value_or(dit::padding{}));
  }

  /// Before anything else of the call.
  void move() const {
    encoder.move();
    if (together) together->move();
  }

  void use(const packed_upload& sent) {
    encoder.use(sent);
    if (estimator) estimator->use(sent);
    if (together && !padding) together->use(sent);
    tokens = sent[token_part];
    noise = sent[noise_part];
    job = sent[job_part];
  }

  static std::vector<std::int64_t> rows_of(std::span<const flow::job> jobs) {
    std::vector<std::int64_t> rows;
    for (const auto& job : jobs) rows.push_back(job.stream->rows());
    return rows;
  }
};

std::vector<at::Tensor> flow::run(std::span<const job> jobs, trace* seen) const {
  return run(jobs, shared_memory(), seen);
}

void flow::begin(const job& voice) const {
  const auto own = memory_ ? std::optional(make_memory(0)) : std::nullopt;
  run({&voice, 1}, own ? &*own : nullptr, nullptr);
}

std::vector<at::Tensor> flow::run(std::span<const job> jobs, const memory* in, trace* seen) const {
  if (in == nullptr)
    for (const auto& job : jobs) job.stream->steps.resize(times_.size());
  packed_upload numbers;
  plan at(*this, jobs, in, numbers, seen != nullptr);
  at.move();
  numbers.send(noise_.device());
  at.use(numbers);
  const auto encoded = encoder_.run(to_encode(jobs), embedding_.index_select(0, at.tokens), at.encoder);
  const auto mu = to_mel_(encoded);
  if (seen != nullptr) {
    seen->encoded = cut(encoded, at.lengths, 0);
    seen->mu = cut(mu, at.lengths, 0);
  }
  std::vector<at::Tensor> mels;
  for (const auto& rows : cut(solve(jobs, mu, at, seen).to(at::kFloat), at.lengths, 0))
    mels.push_back(rows.t().unsqueeze(0));
  return mels;
}

/// mu, speaker and known mel of all rows, [rows, 3 * bins]
at::Tensor flow::condition(std::span<const job> jobs, const at::Tensor& mu, const plan& at) const {
  std::vector<at::Tensor> speakers;
  auto known = at::zeros_like(mu);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    speakers.push_back(jobs[i].speaker);
    if (const auto& mel = jobs[i].prompt_mel; mel.defined()) known.narrow(0, begin, mel.size(0)).copy_(mel);
    begin += at.lengths[i];
  }
  return at::cat({mu, at::stack(speakers).index_select(0, at.job), known}, 1);
}

at::Tensor flow::solve(std::span<const job> jobs, const at::Tensor& mu, const plan& at, trace* seen) const {
  auto x = noise_.index_select(0, at.noise);
  const auto known = condition(jobs, mu, at);
  const auto context = at::stack({known, at::zeros_like(known)});
  if (at.padding) return solve_by_graph(x, context, at);
  if (at.together) return solve(x, context, at.in->estimator, *at.together, seen);
  for (std::size_t k = 0; k < times_.size(); ++k)
    x = advance(
        k, x, estimator_.run(join(x, context), modulations_[k], to_estimate(jobs, at.lengths, k), *at.estimator), seen);
  return x;
}

at::Tensor flow::solve(at::Tensor x, const at::Tensor& context, const dit::memory& in, const dit::shared_places& at,
                       trace* seen) const {
  for (std::size_t k = 0; k < times_.size(); ++k)
    x = advance(k, x, estimator_.run(join(x, context), modulations_[k], k, in, at), seen);
  return x;
}

/// The padding of a call with so few streams that asking for its kernels takes longer than running them; none for others.
std::optional<dit::padding> flow::padding_of(std::span<const std::int64_t> lengths,
                                             std::span<const std::int64_t> past) const {
  constexpr std::int64_t most_streams = 8, rows_of_stream = 56, more_rows = 8; // a window has 50 rows, the last one 56
  constexpr std::int64_t shortest_bound = 1024;
  const auto streams = std::ssize(lengths), padded = padded_count(streams), rows = rows_of_stream * padded + more_rows;
  if (streams > most_streams || !varlen_attention::is_one_call(noise_.device(), estimator_.dtype()))
    return std::nullopt;
  dit::padding made;
  made.sequences = padded + 1 - streams;
  made.rows = rows - std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (made.rows < made.sequences) return std::nullopt;
  std::int64_t longest = shortest_bound;
  for (std::size_t i = 0; i < past.size(); ++i) longest = std::max(longest, past[i] + lengths[i]);
  made.attention = {rows, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(longest)))};
  const auto& [keys_values, inputs] = memory_->estimator;
  if (!spare_rows_) {
    spare_rows_ = keys_values.take(rows_of_stream * most_streams + more_rows);
    spare_inputs_ = inputs.pool().take(inputs.rows());
  }
  made.first_row = spare_rows_->first();
  made.first_input = spare_inputs_->first();
  return made;
}

at::Tensor flow::solve_by_graph(const at::Tensor& x, const at::Tensor& context, const plan& at) const {
  const auto rows = x.size(0) + at.padding->rows;
  const at::Tensor inputs[] = {at::constant_pad_nd(x, {0, 0, 0, at.padding->rows}),
                               at::constant_pad_nd(context, {0, 0, 0, at.padding->rows})};
  const auto work = [this, in = &at.in->estimator, places = at.together](const packed_upload& sent,
                                                                         std::span<const at::Tensor> given) {
    places->use(sent);
    return solve(given[0], given[1], *in, *places, nullptr);
  };
  const auto& [keys_values, contexts] = at.in->estimator;
  const graph_cache::key shape{std::ssize(at.lengths) + at.padding->sequences,
                               rows,
                               at.padding->attention.keys,
                               keys_values.rows(),
                               contexts.pool().rows(),
                               reinterpret_cast<std::int64_t>(keys_values.part(0).const_data_ptr()),
                               reinterpret_cast<std::int64_t>(contexts.tensor().const_data_ptr())};
  return graphs_.run(shape, at.solver, inputs, x.device(), work).narrow(0, 0, x.size(0));
}

/// What a solver step makes of x [N, bins].
at::Tensor flow::advance(std::size_t k, const at::Tensor& x, const at::Tensor& velocity, trace* seen) const {
  if (seen != nullptr) {
    seen->x.push_back(x);
    seen->t.push_back(times_[k]);
    seen->conditioned.push_back(velocity[0]);
    seen->unconditioned.push_back(velocity[1]);
  }
  return x + ((1 + guidance_) * velocity[0] - guidance_ * velocity[1]) * widths_[k];
}

/// The estimator's newest rows come first, so the surviving last rows are the end of the voice and not of the
/// conversation. The reference does it like this.
void flow::trim(state& stream, std::int64_t prompt_rows, trim_rule rule) const {
  const auto limit = prompt_rows + history_rows;
  const auto keep = [&](auto& rows) { rows.keep_ends(prompt_rows, history_rows); };
  const auto keep_of_tokens = [&](auto& rows) {
    if (rule == trim_rule::per_rate) {
      rows.keep_ends(prompt_rows / 2, history_rows / 2);
      return;
    }
    // The old rule applied the mel-rate length to the token rows, which are stored twice, and read back half of them.
    rows.repeat();
    keep(rows);
    rows.keep_ends(limit / 2, 0);
  };
  if (memory_) {
    auto& [encoder, estimator] = stream.shared;
    if (estimator.keys_values.rows() > limit) keep(estimator.keys_values);
    if (encoder.mel_rows.rows() <= limit) return;
    keep(encoder.mel_rows);
    keep_of_tokens(encoder.token_rows);
    return;
  }
  for (auto& step : stream.steps)
    if (step.rows() > limit)
      for (auto& attention : step.attention) keep(attention);
  auto& layers = stream.encoder.attention;
  if (layers.empty() || layers.back().rows() <= limit) return;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (i >= encoder_.token_layers())
      keep(layers[i]);
    else
      keep_of_tokens(layers[i]);
}

} // namespace parley::inference::speech
