#include "inference/vocoder/legacy_vocoder.hpp"

#include <ATen/ATen.h>

#include <algorithm>

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

at::Tensor legacy_vocoder::stream(state& session, const at::Tensor& mel, const at::Tensor& noise, bool final) const {
  const auto overlap = overlap_frames * network_->trunk().config().frame_samples();
  const auto joined = session.mel.defined() ? at::cat({session.mel, mel}, 2) : mel;
  if (joined.size(2) == 0) return at::zeros({1, 0}, mel.options());
  auto [speech, source] = network_->run(joined, noise, session.source);
  if (session.speech.defined()) fade_over(speech, session.speech);
  session = {last(joined, 2, overlap_frames), last(source, 2, overlap), last(speech, 1, overlap)};
  return final ? speech : speech.slice(1, 0, std::max<std::int64_t>(0, speech.size(1) - overlap));
}

} // namespace parley::inference::speech
