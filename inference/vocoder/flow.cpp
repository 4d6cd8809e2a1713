#include "inference/vocoder/flow.hpp"

#include "inference/vocoder/ragged.hpp"

#include <ATen/ATen.h>

#include <stdexcept>

namespace parley::inference::speech {
namespace {

/// Past rows that the reference keeps, besides the voice's own.
constexpr std::int64_t history_rows = 100;

at::Tensor ends(const at::Tensor& x, std::int64_t axis, std::int64_t front, std::int64_t back) {
  return at::cat({x.narrow(axis, 0, front), x.narrow(axis, x.size(axis) - back, back)}, axis);
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

at::Tensor flow::project_speaker(const at::Tensor& embedding) const {
  const auto wide = embedding.to(embedding_.scalar_type());
  return speaker_(wide / wide.norm().clamp_min(1e-12));
}

std::vector<at::Tensor> flow::run(std::span<const job> jobs, trace* seen) const {
  std::vector<at::Tensor> tokens;
  std::vector<std::int64_t> lengths;
  for (const auto& job : jobs) {
    tokens.push_back(job.tokens);
    lengths.push_back(job.tokens.size(0));
  }
  const auto embedded = cut(embedding_.index_select(0, at::cat(tokens, 0).clamp_min(0)), lengths, 0);
  std::vector<flow_encoder::job> encoding;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    encoding.push_back({&jobs[i].stream->encoder, embedded[i], jobs[i].last});
  const auto encoded = encoder_.run(encoding);
  for (std::size_t i = 0; i < jobs.size(); ++i) lengths[i] = encoded[i].size(0);
  const auto mu = cut(to_mel_(at::cat(encoded, 0)), lengths, 0);
  if (seen != nullptr) {
    seen->encoded = encoded;
    seen->mu = mu;
  }
  return solve(jobs, mu, seen);
}

std::vector<at::Tensor> flow::solve(std::span<const job> jobs, const std::vector<at::Tensor>& mu, trace* seen) const {
  const auto bins = estimator_.bins();
  std::vector<at::Tensor> starts, contexts;
  std::vector<std::int64_t> lengths;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& stream = *jobs[i].stream;
    stream.steps.resize(times_.size());
    const auto rows = mu[i].size(0), from = stream.steps[0].rows();
    if (from + rows > noise_.size(0)) throw std::out_of_range("flow: the stream is longer than the noise table");
    starts.push_back(noise_.narrow(0, from, rows));
    auto condition = at::zeros({rows, bins}, mu[i].options());
    if (jobs[i].prompt_mel.defined()) condition.narrow(0, 0, jobs[i].prompt_mel.size(0)).copy_(jobs[i].prompt_mel);
    contexts.push_back(at::cat({mu[i], jobs[i].speaker.expand({rows, bins}), condition}, 1));
    lengths.push_back(rows);
  }
  auto x = at::cat(starts, 0);
  const auto known = at::cat(contexts, 0);
  const auto context = at::stack({known, at::zeros_like(known)});
  std::vector<dit::job> batch(jobs.size());
  for (std::size_t k = 0; k < times_.size(); ++k) {
    for (std::size_t i = 0; i < jobs.size(); ++i) batch[i] = {&jobs[i].stream->steps[k], lengths[i]};
    const auto velocity = estimator_.run(at::cat({x.expand({2, -1, -1}), context}, 2), modulations_[k], batch);
    if (seen != nullptr) seen->x.push_back(x);
    x = x + ((1 + guidance_) * velocity[0] - guidance_ * velocity[1]) * widths_[k];
    if (seen != nullptr) {
      seen->t.push_back(times_[k]);
      seen->conditioned.push_back(velocity[0]);
      seen->unconditioned.push_back(velocity[1]);
    }
  }
  std::vector<at::Tensor> mels;
  for (const auto& rows : cut(x, lengths, 0)) mels.push_back(rows.t().unsqueeze(0).to(at::kFloat));
  return mels;
}

/// The estimator's newest rows come first, so the surviving last rows are the end of the voice and not of the
/// conversation. The reference does it like this.
void flow::trim(state& stream, std::int64_t prompt_rows, trim_rule rule) const {
  const auto limit = prompt_rows + history_rows;
  for (auto& step : stream.steps)
    if (step.rows() > limit)
      for (auto& attention : step.attention) attention.keep_ends(prompt_rows, history_rows);
  auto& layers = stream.encoder.attention;
  if (layers.empty() || layers.back().size(1) <= limit) return;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i >= encoder_.token_layers())
      layers[i] = ends(layers[i], 1, prompt_rows, history_rows);
    else if (rule == trim_rule::per_rate)
      layers[i] = ends(layers[i], 1, prompt_rows / 2, history_rows / 2);
    else // the old rule applied the mel-rate length to the token rows, which are stored twice, and read back half of
         // them
      layers[i] =
          ends(at::cat({layers[i], layers[i]}, 1), 1, prompt_rows, history_rows).narrow(1, 0, limit / 2).clone();
  }
}

} // namespace parley::inference::speech
