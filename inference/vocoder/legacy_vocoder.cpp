#include "inference/vocoder/legacy_vocoder.hpp"

#include "inference/vocoder/ragged.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <utility>

namespace parley::inference::speech {
namespace {

/// Fades in the beginning of `speech` while `old`, at the same position, fades out. Weights in double, like numpy's.
void fade_over(at::Tensor& speech, const at::Tensor& old) {
  const auto n = std::min(old.size(1), speech.size(1));
  const auto window = at::hamming_window(2 * old.size(1), false, old.options().dtype(at::kDouble));
  const auto rising = window.narrow(0, 0, n), falling = window.narrow(0, old.size(1), n);
  auto begin = speech.narrow(1, 0, n);
  begin.copy_(begin.to(at::kDouble) * rising + old.narrow(1, 0, n).to(at::kDouble) * falling);
}

at::Tensor last(const at::Tensor& x, std::int64_t axis, std::int64_t n) {
  return x.slice(axis, std::max<std::int64_t>(0, x.size(axis) - n)).clone();
}

} // namespace

std::int64_t legacy_vocoder::noise_samples(const state& session, std::int64_t fresh_frames) const {
  return (fresh_frames + (session.mel.defined() ? session.mel.size(2) : 0)) *
         network_->trunk().config().frame_samples();
}

std::vector<at::Tensor> legacy_vocoder::stream(std::span<const job> jobs) const {
  const auto overlap = overlap_frames * network_->trunk().config().frame_samples();
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<std::size_t>> groups; // by frames, cached ones among them
  std::vector<at::Tensor> mels, noises, sources, speech;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& [session, mel, noise, final] = jobs[i];
    const auto cached = session->mel.defined() ? session->mel.size(2) : 0;
    mels.push_back(cached > 0 ? at::cat({session->mel, mel}, 2) : mel);
    noises.push_back(noise);
    sources.push_back(session->source);
    speech.push_back(at::zeros({1, 0}, mel.options()));
    if (mels[i].size(2) > 0) groups[{mels[i].size(2), cached}].push_back(i);
  }
  for (const auto& [key, rows] : groups) {
    const auto cached = key.second > 0 ? batch_of(sources, rows) : at::Tensor();
    const auto all = network_->run(batch_of(mels, rows), batch_of(noises, rows), cached);
    for (std::size_t k = 0; k < rows.size(); ++k) {
      const auto i = rows[k];
      auto& session = *jobs[i].session;
      auto own = all.speech.narrow(0, static_cast<std::int64_t>(k), 1);
      const auto source = all.source.narrow(0, static_cast<std::int64_t>(k), 1);
      if (session.speech.defined()) fade_over(own, session.speech);
      session = {last(mels[i], 2, overlap_frames), last(source, 2, overlap), last(own, 1, overlap)};
      speech[i] = jobs[i].final ? own : own.slice(1, 0, std::max<std::int64_t>(0, own.size(1) - overlap));
    }
  }
  return speech;
}

} // namespace parley::inference::speech
