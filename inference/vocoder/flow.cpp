#include "inference/vocoder/flow.hpp"

#include "inference/vocoder/flow_encoder_places.hpp"
#include "inference/vocoder/ragged.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

namespace parley::inference::speech {
namespace {

/// Past rows that the reference keeps, besides the voice's own.
constexpr std::int64_t history_rows = 100;

std::vector<flow_encoder::job> to_encode(std::span<const flow::job> jobs) {
  std::vector<flow_encoder::job> encoding;
  for (const auto& job : jobs) encoding.push_back({&job.stream->encoder, job.tokens.size(0), job.last});
  return encoding;
}

/// A solver step's part of each job.
std::vector<dit::job> to_estimate(std::span<const flow::job> jobs, std::span<const std::int64_t> rows, std::size_t k) {
  std::vector<dit::job> batch;
  for (std::size_t i = 0; i < jobs.size(); ++i) batch.push_back({&jobs[i].stream->steps[k], rows[i]});
  return batch;
}

} // namespace

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
    modulations_.push_back(estimator_.modulate(estimator_.embed_time(at::full({1}, t, embedding_.options()))));
    t += width;
    if (k + 2 <= steps) width = span[k + 2] - t;
  }
}

void flow::use_bfloat16() {
  encoder_.use_bfloat16();
  estimator_.use_bfloat16();
}

at::Tensor flow::project_speaker(const at::Tensor& embedding) const {
  const auto wide = embedding.to(embedding_.scalar_type());
  return speaker_(wide / wide.norm().clamp_min(1e-12));
}

/// Where the rows of one call's jobs are: known before it begins, and uploaded at once.
struct flow::plan {
  flow_encoder::places encoder;
  dit::places estimator;
  std::vector<std::int64_t> lengths; ///< mel rows of each job
  packed_upload::part token_part, noise_part, job_part;
  at::Tensor tokens; ///< of all jobs
  at::Tensor noise;  ///< for each mel row, its row in the noise table
  at::Tensor job;    ///< for each mel row, its job

  /// The streams must have as many steps as the solver.
  plan(const flow& model, std::span<const flow::job> jobs, packed_upload& numbers)
      : encoder(model.encoder_, to_encode(jobs), model.noise_.device(), numbers),
        estimator(to_estimate(jobs, encoder.mel_rows(), 0), model.noise_.device(), numbers),
        lengths(encoder.mel_rows().begin(), encoder.mel_rows().end()) {
    std::vector<std::int64_t> ids, noise_rows, job_of_row;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const std::span tokens_of(jobs[i].tokens.const_data_ptr<std::int64_t>(),
                                static_cast<std::size_t>(jobs[i].tokens.numel()));
      for (const auto token : tokens_of) ids.push_back(std::max<std::int64_t>(0, token));
      const auto from = jobs[i].stream->steps[0].rows();
      if (from + lengths[i] > model.noise_.size(0))
        throw std::out_of_range("flow: the stream is longer than the noise table");
      for (std::int64_t n = 0; n < lengths[i]; ++n) {
        noise_rows.push_back(from + n);
        job_of_row.push_back(static_cast<std::int64_t>(i));
      }
    }
    token_part = numbers.add(ids);
    noise_part = numbers.add(noise_rows);
    job_part = numbers.add(job_of_row);
  }

  void use(const packed_upload& sent) {
    encoder.use(sent);
    estimator.use(sent);
    tokens = sent[token_part];
    noise = sent[noise_part];
    job = sent[job_part];
  }
};

std::vector<at::Tensor> flow::run(std::span<const job> jobs, trace* seen) const {
  for (const auto& job : jobs) job.stream->steps.resize(times_.size());
  packed_upload numbers;
  plan at(*this, jobs, numbers);
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
  for (std::size_t k = 0; k < times_.size(); ++k) {
    const auto batch = to_estimate(jobs, at.lengths, k);
    const auto velocity =
        estimator_.run(at::cat({x.expand({2, -1, -1}), context}, 2), modulations_[k], batch, at.estimator);
    if (seen != nullptr) seen->x.push_back(x);
    x = x + ((1 + guidance_) * velocity[0] - guidance_ * velocity[1]) * widths_[k];
    if (seen != nullptr) {
      seen->t.push_back(times_[k]);
      seen->conditioned.push_back(velocity[0]);
      seen->unconditioned.push_back(velocity[1]);
    }
  }
  return x;
}

/// The estimator's newest rows come first, so the surviving last rows are the end of the voice and not of the
/// conversation. The reference does it like this.
void flow::trim(state& stream, std::int64_t prompt_rows, trim_rule rule) const {
  const auto limit = prompt_rows + history_rows;
  for (auto& step : stream.steps)
    if (step.rows() > limit)
      for (auto& attention : step.attention) attention.keep_ends(prompt_rows, history_rows);
  auto& layers = stream.encoder.attention;
  if (layers.empty() || layers.back().rows() <= limit) return;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i >= encoder_.token_layers())
      layers[i].keep_ends(prompt_rows, history_rows);
    else if (rule == trim_rule::per_rate)
      layers[i].keep_ends(prompt_rows / 2, history_rows / 2);
    else { // the old rule applied the mel-rate length to the token rows, which are stored twice, and read back half of
           // them
      layers[i].repeat();
      layers[i].keep_ends(prompt_rows, history_rows);
      layers[i].keep_ends(limit / 2, 0);
    }
  }
}

} // namespace parley::inference::speech
