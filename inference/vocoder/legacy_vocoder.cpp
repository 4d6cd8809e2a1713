#include "inference/vocoder/legacy_vocoder.hpp"

#include "inference/kernels/transfer.hpp"
#include "inference/speech/ragged.hpp"

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

legacy_vocoder::legacy_vocoder(std::shared_ptr<const hift_original> network) : network_(std::move(network)) {
  const auto mix = network_->trunk().noise_mix();
  if (!mix.is_cpu()) mix_ = download(mix);
}

std::int64_t legacy_vocoder::noise_samples(const state& session, std::int64_t fresh_frames) const {
  return (fresh_frames + (session.mel.defined() ? session.mel.size(2) : 0)) *
         network_->trunk().config().frame_samples();
}

at::Tensor legacy_vocoder::prepared(const at::Tensor& gaussian) const {
  return mix_.defined() ? at::matmul(gaussian, mix_) : gaussian;
}

/// The groups' tensors are joined and cut as wholes, so that a device is asked as much for many jobs as for one.
std::vector<at::Tensor> legacy_vocoder::stream(std::span<const job> jobs) const {
  const auto overlap = overlap_frames * network_->trunk().config().frame_samples();
  std::map<std::pair<std::int64_t, std::int64_t>, group> groups; // by new frames and cached ones
  std::vector<at::Tensor> earlier_mels, mels, noises, sources, tails, speech;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& [session, mel, noise, final] = jobs[i];
    earlier_mels.push_back(session->mel);
    mels.push_back(mel);
    noises.push_back(noise);
    sources.push_back(session->source);
    tails.push_back(session->speech);
    speech.push_back(at::zeros({1, 0}, mel.options()));
    const auto cached = session->mel.defined() ? session->mel.size(2) : 0;
    if (cached + mel.size(2) > 0) groups[{mel.size(2), cached}].rows.push_back(i);
  }
  for (auto& [key, of] : groups) {
    of.cached = key.second;
    of.mel = batch_of(mels, of.rows);
    of.noise = batch_of(noises, of.rows);
    if (of.cached > 0) {
      of.mel = at::cat({batch_of(earlier_mels, of.rows), of.mel}, 2);
      of.source = batch_of(sources, of.rows);
    }
    auto [own, source] = vocode(of);
    if (of.cached > 0) fade_over(own, batch_of(tails, of.rows));
    const auto mel_ends = last(of.mel, 2, overlap_frames), source_ends = last(source, 2, overlap),
               speech_ends = last(own, 1, overlap);
    const auto held_back = std::max<std::int64_t>(0, own.size(1) - overlap);
    for (std::size_t k = 0; k < of.rows.size(); ++k) {
      const auto i = of.rows[k];
      const auto row = static_cast<std::int64_t>(k);
      *jobs[i].session = {mel_ends.narrow(0, row, 1), source_ends.narrow(0, row, 1), speech_ends.narrow(0, row, 1)};
      const auto all = own.narrow(0, row, 1);
      speech[i] = jobs[i].final ? all : all.slice(1, 0, held_back);
    }
  }
  return speech;
}

hift_original::result legacy_vocoder::vocode(const group& of) const {
  return mix_.defined() ? vocode_by_graph(of) : network_->run(of.mel, of.noise, of.source);
}

/// Padded to few numbers of jobs, because a convolution is planned anew, and a graph recorded, for each.
hift_original::result legacy_vocoder::vocode_by_graph(const group& of) const {
  const auto count = of.mel.size(0), more = padded_count(count) - count;
  const auto device = of.mel.device();
  std::vector<at::Tensor> inputs{at::constant_pad_nd(of.mel, {0, 0, 0, 0, 0, more}),
                                 upload(at::constant_pad_nd(of.noise, {0, 0, 0, more}), device)};
  if (of.cached > 0) inputs.push_back(at::constant_pad_nd(of.source, {0, 0, 0, 0, 0, more}));
  const auto both = graphs_.run({count + more, of.mel.size(2), of.cached}, {}, inputs, device,
                                [network = network_](const packed_upload&, std::span<const at::Tensor> given) {
                                  const auto made =
                                      network->run(given[0], given[1], given.size() > 2 ? given[2] : at::Tensor());
                                  return at::stack({made.speech, made.source.squeeze(1)});
                                });
  return {both[0].narrow(0, 0, count), both[1].narrow(0, 0, count).unsqueeze(1)};
}

} // namespace parley::inference::speech
