#include "inference/vocoder/bounded_vocoder.hpp"

#include "inference/speech/ragged.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace parley::inference::speech {
namespace {

/// Indices of the calls that can share a batch: those with equal numbers of frames, either all final or none.
using batches = std::map<std::pair<std::int64_t, bool>, std::vector<std::size_t>>;

} // namespace

bounded_vocoder::bounded_vocoder(std::shared_ptr<const hift_causal> network, const at::Tensor& noise,
                                 std::int64_t block_frames)
    : network_(std::move(network)), block_frames_(block_frames), history_(network_->trunk().history_frames()) {
  if (noise.dim() != 2 || noise.size(0) < 1 || noise.size(1) != network_->trunk().harmonics() || block_frames_ < 1)
    throw std::runtime_error("causal vocoder: noise table or block size do not fit");
  mixed_noise_ = network_->trunk().mix_noise(noise);
  if (mixed_noise_.is_cpu()) return;
  const auto rows = mixed_noise_.size(0);
  noise_step_ = std::gcd(rows, frame_samples());
  const auto times = 1 + (frame_samples() + rows - 1) / rows;
  noise_frames_ =
      mixed_noise_.repeat({times}).narrow(0, 0, rows + frame_samples()).unfold(0, frame_samples(), noise_step_);
}

bounded_vocoder::state bounded_vocoder::start() const {
  state made;
  made.phase = at::zeros({1, network_->trunk().harmonics()}, mixed_noise_.options().dtype(at::kDouble));
  return made;
}

std::vector<at::Tensor> bounded_vocoder::stream(std::span<const job> jobs) const {
  for (const auto& job : jobs)
    if (job.session->finalized) throw std::logic_error("causal vocoder: the stream has ended");
  return mixed_noise_.is_cpu() ? stream_in_groups(jobs) : stream_together(jobs);
}

std::vector<at::Tensor> bounded_vocoder::stream_in_groups(std::span<const job> jobs) const {
  std::vector<std::vector<at::Tensor>> speech(jobs.size());
  std::int64_t rounds = 0;
  for (const auto& job : jobs) rounds = std::max(rounds, (job.mel.size(2) + block_frames_ - 1) / block_frames_);
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::vector<step> steps;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto from = round * block_frames_, frames = jobs[i].mel.size(2);
      if (from >= frames) continue;
      auto& session = *jobs[i].session;
      const auto block = jobs[i].mel.narrow(2, from, std::min(block_frames_, frames - from));
      session.mel = session.mel.defined() ? at::cat({session.mel, block}, 2) : block.clone();
      steps.push_back({&session, false, &speech[i]});
    }
    advance(steps);
  }
  std::vector<step> last;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    if (jobs[i].final) last.push_back({jobs[i].session, true, &speech[i]});
  advance(last);
  for (const auto& step : last) step.session->finalized = true;

  std::vector<at::Tensor> result;
  for (auto& pieces : speech)
    result.push_back(pieces.empty() ? at::zeros({1, 0}, mixed_noise_.options()) : at::cat(pieces, 1));
  return result;
}

void bounded_vocoder::advance(std::span<const step> steps) const {
  extend_sources(steps);
  emit(steps);
  for (const auto& [session, final, speech] : steps) {
    if (!session->mel.defined()) continue;
    const auto from = std::max<std::int64_t>(0, session->emitted - history_);
    const auto mel_from = std::max<std::int64_t>(0, std::min(from, session->source_end - network_->f0_left()));
    if (const auto drop = mel_from - session->mel_offset; drop > 0) {
      session->mel = session->mel.slice(2, drop).clone();
      session->mel_offset = mel_from;
    }
    if (const auto drop = from - session->source_offset; drop > 0) {
      session->source = session->source.slice(1, drop * frame_samples()).clone();
      session->source_offset = from;
    }
  }
}

void bounded_vocoder::extend_sources(std::span<const step> steps) const {
  batches groups;
  std::vector<at::Tensor> mels(steps.size());
  std::vector<std::int64_t> skip(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& s = *steps[i].session;
    const auto received = s.mel_offset + (s.mel.defined() ? s.mel.size(2) : 0);
    if (received - (steps[i].final ? 0 : network_->f0_right()) <= s.source_end) continue;
    const auto from = std::max<std::int64_t>(0, s.source_end - network_->f0_left());
    mels[i] = s.mel.slice(2, from - s.mel_offset);
    skip[i] = s.source_end - from;
    groups[{mels[i].size(2), steps[i].final}].push_back(i);
  }
  for (const auto& [key, rows] : groups) {
    const auto f0 = network_->f0(batch_of(mels, rows), key.second);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto row = static_cast<std::int64_t>(k);
      auto& s = *steps[rows[k]].session;
      const auto fresh = f0.narrow(0, row, 1).slice(1, skip[rows[k]]);
      for (std::int64_t at = 0; at < fresh.size(1); at += block_frames_) {
        const auto part = excitation(s, fresh.slice(1, at, at + block_frames_));
        s.source = s.source.defined() ? at::cat({s.source, part}, 1) : part;
      }
    }
  }
}

/// f0 [B, frames], phase [B, harmonics] → the phase of each frame, held for all its samples [B, frames, harmonics]. Phases
/// accumulate in double precision.
at::Tensor bounded_vocoder::cycles(const at::Tensor& f0, const at::Tensor& phase) const {
  const auto& trunk = network_->trunk();
  const auto harmonic = at::arange(1, trunk.harmonics() + 1, f0.options());
  const auto cycles_per_sample = at::remainder(f0.unsqueeze(-1) * harmonic / trunk.config().sample_rate, 1);
  return at::cumsum(cycles_per_sample.to(at::kDouble), 1) * static_cast<double>(frame_samples()) + phase.unsqueeze(1);
}

at::Tensor bounded_vocoder::excite(const at::Tensor& cycles, const at::Tensor& f0, const at::Tensor& noise) const {
  const auto sines = at::sin(at::remainder(cycles, 1) * (2 * std::numbers::pi)).to(at::kFloat);
  return network_->trunk().excite(sines, f0, noise);
}

/// f0 [1, frames] → [1, samples]
at::Tensor bounded_vocoder::excitation(state& session, const at::Tensor& f0) const {
  const auto frames = f0.size(1), samples = frame_samples();
  const auto phases = cycles(f0, session.phase);
  session.phase = at::remainder(phases.select(1, frames - 1), 1);
  const auto rows = mixed_noise_.size(0), first_row = session.source_end * samples % rows;
  auto noise = mixed_noise_.slice(0, first_row, first_row + frames * samples);
  while (noise.size(0) < frames * samples)
    noise = at::cat({noise, mixed_noise_.slice(0, 0, frames * samples - noise.size(0))}, 0);
  session.source_end += frames;
  return excite(phases, f0, noise.view({1, frames, samples}));
}

void bounded_vocoder::emit(std::span<const step> steps) const {
  batches groups;
  std::vector<at::Tensor> mels(steps.size()), sources(steps.size());
  std::vector<std::int64_t> available(steps.size()), skip(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto& s = *steps[i].session;
    available[i] = s.source_end - (steps[i].final ? 0 : network_->decoder_right());
    if (available[i] <= s.emitted) continue;
    const auto from = std::max<std::int64_t>(0, s.emitted - history_);
    mels[i] = s.mel.slice(2, from - s.mel_offset, s.source_end - s.mel_offset);
    sources[i] = s.source.slice(1, (from - s.source_offset) * frame_samples());
    skip[i] = (s.emitted - from) * frame_samples();
    groups[{mels[i].size(2), steps[i].final}].push_back(i);
  }
  for (const auto& [key, rows] : groups) {
    const auto speech = network_->decode(batch_of(mels, rows), batch_of(sources, rows), key.second);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto& step = steps[rows[k]];
      step.speech->push_back(speech.narrow(0, static_cast<std::int64_t>(k), 1).slice(1, skip[rows[k]]));
      step.session->emitted = available[rows[k]];
    }
  }
}

} // namespace parley::inference::speech
