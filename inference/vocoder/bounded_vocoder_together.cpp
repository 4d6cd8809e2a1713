#include "inference/kernels/device_graph.hpp"
#include "inference/kernels/packed_upload.hpp"
#include "inference/speech/ragged.hpp"
#include "inference/vocoder/bounded_vocoder.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstddef>

// The causal vocoder for an accelerator, where a call of the network costs as much for many streams as for one: streams
// of different lengths side by side, aligned at their beginnings and padded behind their ends. What comes later does not
// affect what came before, but for a few frames of lookahead, which see zeros behind a final stream and are not used of
// any other. Everything that depends on the lengths is planned on the host and uploaded at once.
namespace parley::inference::speech {
namespace {

/// Numbers of many streams, later rows of them on the device.
struct row_numbers {
  std::vector<std::int64_t> planned;
  packed_upload::part part;

  void add(std::int64_t row) { planned.push_back(row); }
  void add_to(packed_upload& numbers) { part = numbers.add(planned); }
};

/// cuDNN plans a convolution anew for each shape that it has not seen, which takes longer than the call: calls are padded
/// to few numbers of streams, and to multiples of so many frames.
constexpr std::int64_t frame_step = 16;

std::int64_t round_up(std::int64_t n, std::int64_t step) {
  return (n + step - 1) / step * step;
}

at::Tensor frames_of(const at::Tensor& mel) {
  return mel.squeeze(0).t();
}

/// One stream's part of a call, in frames since its start unless said otherwise.
struct stream_part {
  bool final;
  std::int64_t received;     ///< frames of mel
  std::int64_t mel_begin;    ///< row of frame `mel_offset` in the joined mel
  std::int64_t fresh;        ///< frames whose excitation becomes known
  std::int64_t source_end;   ///< frames that then have an excitation
  std::int64_t source_begin; ///< row of frame `source_offset` in the joined excitation
  std::int64_t from;         ///< the first frame to decode
  std::int64_t available;    ///< frames whose samples can be returned

  std::int64_t decoded() const { return source_end - from; }
};

} // namespace

struct bounded_vocoder::plan {
  std::vector<stream_part> parts;
  std::int64_t zero_frame = 0;            ///< row behind the joined mel
  std::vector<std::size_t> sing, speak;   ///< jobs that get an excitation, and samples
  std::int64_t singers = 0, speakers = 0; ///< their numbers, padded
  std::int64_t heard = 0, fresh = 0;      ///< most frames of mel to compute f0 from; most new frames
  std::int64_t decoded = 0;               ///< most frames to decode
  std::int64_t ends = 0;                  ///< final streams among those that get samples
  row_numbers f0_mel, f0, phase, noise;   ///< of those that `sing`
  row_numbers last, mirror;               ///< the last frame of each final stream; a frame's samples backwards
  row_numbers mel, source, columns;       ///< of those that `speak`
  packed_upload numbers;

  plan(const bounded_vocoder& model, std::span<const job> jobs);

  at::Tensor operator[](const row_numbers& wanted) const { return numbers[wanted.part]; }

private:
  void place(const bounded_vocoder& model, std::span<const job> jobs);
  void plan_sources(const bounded_vocoder& model, std::span<const job> jobs);
  void plan_speech(const bounded_vocoder& model, std::span<const job> jobs);

  /// The row of a frame in the joined mel.
  std::int64_t mel_row(const job& of, const stream_part& part, std::int64_t frame) const {
    return frame < part.received ? part.mel_begin + frame - of.session->mel_offset : zero_frame;
  }
};

bounded_vocoder::plan::plan(const bounded_vocoder& model, std::span<const job> jobs) {
  place(model, jobs);
  plan_sources(model, jobs);
  plan_speech(model, jobs);
  for (auto* rows : {&f0_mel, &f0, &phase, &noise, &last, &mirror, &mel, &source, &columns}) rows->add_to(numbers);
  numbers.send(model.mixed_noise_.device());
}

void bounded_vocoder::plan::place(const bounded_vocoder& model, std::span<const job> jobs) {
  std::int64_t source_rows = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& s = *jobs[i].session;
    const auto frames = (s.mel.defined() ? s.mel.size(2) : 0) + jobs[i].mel.size(2);
    stream_part part{};
    part.final = jobs[i].final;
    part.received = s.mel_offset + frames;
    part.mel_begin = zero_frame;
    zero_frame += frames;
    const auto known = part.received - (part.final ? 0 : model.network_->f0_right());
    part.fresh = std::max<std::int64_t>(0, known - s.source_end);
    part.source_end = s.source_end + part.fresh;
    part.source_begin = source_rows;
    source_rows += part.source_end - s.source_offset;
    part.from = std::max<std::int64_t>(0, s.emitted - model.history_);
    part.available = std::max(s.emitted, part.source_end - (part.final ? 0 : model.network_->decoder_right()));
    if (part.fresh > 0) sing.push_back(i);
    if (part.available > s.emitted) speak.push_back(i);
    parts.push_back(part);
  }
}

void bounded_vocoder::plan::plan_sources(const bounded_vocoder& model, std::span<const job> jobs) {
  const auto left = model.network_->f0_left(), right = model.network_->f0_right(), samples = model.frame_samples();
  auto first = [&](std::size_t i) { return std::max<std::int64_t>(0, jobs[i].session->source_end - left); };
  for (const auto i : sing) {
    heard = std::max(heard, parts[i].received - first(i) + (parts[i].final ? right : 0));
    fresh = std::max(fresh, parts[i].fresh);
  }
  heard = round_up(heard, frame_step);
  singers = sing.empty() ? 0 : padded_count(std::ssize(sing));
  for (std::size_t k = 0; k < sing.size(); ++k) {
    const auto& job = jobs[sing[k]];
    const auto& part = parts[sing[k]];
    const auto from = first(sing[k]), row = static_cast<std::int64_t>(k), begin = job.session->source_end;
    for (std::int64_t n = 0; n < heard; ++n) f0_mel.add(mel_row(job, part, from + n));
    for (std::int64_t n = 0; n < fresh; ++n) {
      f0.add(row * (heard - right) + begin - from + std::min(n, part.fresh - 1));
      noise.add((begin + n) * samples % model.mixed_noise_.size(0) / model.noise_step_);
    }
    phase.add(row * fresh + part.fresh - 1);
  }
  for (auto n = std::ssize(sing) * heard; n < singers * heard; ++n) f0_mel.add(zero_frame);
}

void bounded_vocoder::plan::plan_speech(const bounded_vocoder& model, std::span<const job> jobs) {
  const auto ahead = model.network_->decoder_right() - 1, rate = model.network_->trunk().config().rate();
  const auto source_rows = parts.back().source_begin + parts.back().source_end - jobs.back().session->source_offset;
  for (const auto i : speak) decoded = std::max(decoded, parts[i].decoded());
  decoded = round_up(decoded, frame_step);
  speakers = speak.empty() ? 0 : padded_count(std::ssize(speak));
  for (const auto i : speak) {
    const auto& part = parts[i];
    const auto own = part.decoded(), source_from = part.source_begin + part.from - jobs[i].session->source_offset;
    for (std::int64_t n = 0; n < decoded + ahead; ++n)
      mel.add(n < own ? mel_row(jobs[i], part, part.from + n) : zero_frame);
    for (std::int64_t n = 0; n <= decoded; ++n)
      source.add(part.final && n == own ? source_rows + ends : source_from + std::min(n, own - 1));
    columns.add((part.final ? own : decoded) * rate + 1);
    if (part.final) {
      last.add(source_from + own - 1);
      ++ends;
    }
  }
  for (auto k = std::ssize(speak); k < speakers; ++k) {
    for (std::int64_t n = 0; n < decoded + ahead; ++n) mel.add(zero_frame);
    for (std::int64_t n = 0; n <= decoded; ++n) source.add(0);
    columns.add(decoded * rate + 1);
  }
  // Behind its last sample, which is not repeated, a spectrum sees the source mirrored.
  const auto samples = model.frame_samples();
  for (std::int64_t n = 0; ends > 0 && n < samples; ++n) mirror.add(std::max<std::int64_t>(0, samples - 2 - n));
}

/// One round for each `block_frames` of the longest job: a call of a turn is one round.
std::vector<at::Tensor> bounded_vocoder::stream_together(std::span<const job> jobs) const {
  std::vector<std::vector<at::Tensor>> speech(jobs.size());
  for (std::int64_t from = 0, rounds = 1; rounds > 0; from += block_frames_) {
    std::vector<job> batch;
    std::vector<std::size_t> who;
    rounds = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto frames = jobs[i].mel.size(2);
      const auto left = frames - from;
      if (left > block_frames_) ++rounds;
      if (left <= 0 && (from > 0 || !jobs[i].final)) continue;
      batch.push_back(
          {jobs[i].session, jobs[i].mel.slice(2, from, from + block_frames_), jobs[i].final && left <= block_frames_});
      who.push_back(i);
    }
    if (batch.empty()) break;
    const auto made = advance_together(batch);
    for (std::size_t k = 0; k < who.size(); ++k)
      if (made[k].defined()) speech[who[k]].push_back(made[k]);
  }
  std::vector<at::Tensor> pieces;
  std::vector<std::int64_t> lengths;
  for (const auto& each : speech) {
    lengths.push_back(0);
    for (const auto& piece : each) {
      pieces.push_back(piece);
      lengths.back() += piece.size(1);
    }
  }
  if (pieces.empty()) pieces.push_back(at::zeros({1, 0}, mixed_noise_.options()));
  return cut(at::cat(pieces, 1), lengths, 1);
}

at::Tensor bounded_vocoder::f0_by_graph(const at::Tensor& heard) const {
  return graphs_.run({heard.size(0), heard.size(2)}, {}, {&heard, 1}, heard.device(),
                     [network = network_](const packed_upload&, std::span<const at::Tensor> given) {
                       return network->f0(given[0], false);
                     });
}

/// `columns`: undefined if no stream ends.
at::Tensor bounded_vocoder::speech_by_graph(const at::Tensor& mel, const at::Tensor& source,
                                            const at::Tensor& columns) const {
  std::vector<at::Tensor> inputs{mel, source};
  if (columns.defined()) inputs.push_back(columns);
  return graphs_.run({mel.size(0), mel.size(2), std::ssize(inputs)}, {}, inputs, mel.device(),
                     [network = network_](const packed_upload&, std::span<const at::Tensor> given) {
                       return network->decode_together(given[0], given[1], given.size() > 2 ? given[2] : at::Tensor());
                     });
}

/// The excitation of all streams, earlier frames and new ones: [frames, samples]. Undefined if there is none.
at::Tensor bounded_vocoder::extend_sources(std::span<const job> jobs, const plan& at, const at::Tensor& mels) const {
  at::Tensor fresh, phases;
  if (!at.sing.empty()) {
    const auto streams = std::ssize(at.sing), bins = mels.size(1);
    const auto heard = mels.index_select(0, at[at.f0_mel]).view({at.singers, at.heard, bins}).transpose(1, 2);
    const auto f0 = f0_by_graph(heard).flatten().index_select(0, at[at.f0]).view({streams, at.fresh});
    std::vector<at::Tensor> before;
    for (const auto i : at.sing) before.push_back(jobs[i].session->phase);
    const auto reached = cycles(f0, at::cat(before, 0));
    phases = at::remainder(reached.flatten(0, 1).index_select(0, at[at.phase]), 1);
    const auto noise = noise_frames_.index_select(0, at[at.noise]).view({streams, at.fresh, frame_samples()});
    fresh = excite(reached, f0, noise).view({streams, at.fresh, frame_samples()});
  }
  std::vector<at::Tensor> frames;
  for (std::size_t i = 0, k = 0; i < jobs.size(); ++i) {
    auto& s = *jobs[i].session;
    if (s.source.defined()) frames.push_back(s.source.view({-1, frame_samples()}));
    if (at.parts[i].fresh == 0) continue;
    const auto row = static_cast<std::int64_t>(k++);
    s.phase = phases.narrow(0, row, 1);
    frames.push_back(fresh.select(0, row).narrow(0, 0, at.parts[i].fresh));
  }
  return frames.empty() ? at::Tensor() : at::cat(frames, 0);
}

/// At most `block_frames` new frames of each. Returns the new samples [1, n] of each, undefined if there are none.
std::vector<at::Tensor> bounded_vocoder::advance_together(std::span<const job> jobs) const {
  std::vector<at::Tensor> frames;
  for (const auto& job : jobs) {
    if (job.session->mel.defined()) frames.push_back(frames_of(job.session->mel));
    frames.push_back(frames_of(job.mel));
  }
  frames.push_back(at::zeros({1, frames.back().size(1)}, mixed_noise_.options()));
  const auto mels = at::cat(frames, 0);
  const plan at(*this, jobs);
  const auto sources = extend_sources(jobs, at, mels);

  std::vector<at::Tensor> result(jobs.size());
  if (!at.speak.empty()) {
    const auto bins = mels.size(1);
    const auto mirrored =
        at.ends == 0 ? sources
                     : at::cat({sources, sources.index_select(0, at[at.last]).index_select(1, at[at.mirror])}, 0);
    const auto mel = mels.index_select(0, at[at.mel]).view({at.speakers, -1, bins}).transpose(1, 2);
    const auto source = mirrored.index_select(0, at[at.source]).view({at.speakers, -1});
    const auto speech = speech_by_graph(mel, source, at.ends == 0 ? at::Tensor() : at[at.columns]);
    for (std::size_t k = 0; k < at.speak.size(); ++k) {
      const auto i = at.speak[k];
      const auto& part = at.parts[i];
      const auto emitted = jobs[i].session->emitted;
      result[i] = speech.narrow(0, static_cast<std::int64_t>(k), 1)
                      .narrow(1, (emitted - part.from) * frame_samples(), (part.available - emitted) * frame_samples());
    }
  }
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& s = *jobs[i].session;
    const auto& part = at.parts[i];
    s.emitted = part.available;
    s.source_end = part.source_end;
    s.finalized = part.final;
    const auto from = std::max<std::int64_t>(0, s.emitted - history_);
    const auto mel_from = std::max(s.mel_offset, std::min(from, s.source_end - network_->f0_left()));
    if (part.received > 0)
      s.mel = mels.narrow(0, part.mel_begin + mel_from - s.mel_offset, part.received - mel_from).t().unsqueeze(0);
    s.mel_offset = mel_from;
    const auto source_from = std::max(s.source_offset, from);
    if (part.source_end > 0)
      s.source = sources.narrow(0, part.source_begin + source_from - s.source_offset, part.source_end - source_from)
                     .view({1, -1});
    s.source_offset = source_from;
  }
  return result;
}

} // namespace parley::inference::speech
