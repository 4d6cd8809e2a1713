#include "inference/vocoder/token2wav.hpp"

#include "inference/formats/state_dict.hpp"
#include "inference/kernels/parallel.hpp"
#include "inference/kernels/transfer.hpp"
#include "inference/speech/ragged.hpp"
#include "inference/speech/speech_driver.hpp"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

namespace parley::inference::speech {
namespace {

/// Frames that a stream holds back; at its beginning the reference replaces them with silence.
constexpr std::int64_t silence_frames = 8;

/// Pads a voice of one or two tokens, because three lookahead tokens must follow it.
constexpr std::int64_t lookahead = flow_encoder::lookahead_rows;

/// On file systems without links, git writes a link as a small text file that contains its target; models are stored
/// like that.
std::filesystem::path followed(const std::filesystem::path& file) {
  constexpr std::uintmax_t longest_name = 256;
  std::error_code none;
  const auto size = file_size(file, none);
  if (none || size == 0 || size > longest_name || !is_regular_file(file, none)) return file;
  std::string target;
  std::getline(std::ifstream(file), target);
  const auto named = file.parent_path() / target;
  return is_regular_file(named, none) ? named : file;
}

/// Copies [1, n] each to the CPU, in one download: [n].
std::vector<at::Tensor> on_cpu(const std::vector<at::Tensor>& speech) {
  std::vector<at::Tensor> rows;
  std::vector<std::int64_t> lengths;
  for (const auto& each : speech) {
    rows.push_back(each.squeeze(0).contiguous());
    lengths.push_back(rows.back().size(0));
  }
  if (rows.empty() || rows.front().is_cpu()) return rows;
  return cut(download(at::cat(rows, 0)), lengths, 0);
}

bool all_numbers(const at::Tensor& samples) {
  const std::span values(samples.const_data_ptr<float>(), static_cast<std::size_t>(samples.numel()));
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

} // namespace

tensor_map read_vocoder(const std::filesystem::path& file) {
  static const std::string prefix = "generator.";
  const auto read = read_state_dict(file);
  tensor_map result(read.origin());
  for (const auto& [name, tensor] : read)
    result.put(name.starts_with(prefix) ? name.substr(prefix.size()) : name, tensor);
  return result;
}

token2wav::generation token2wav::generation_of(const std::filesystem::path& folder) {
  return exists(folder / "hift_original.pt") && exists(followed(folder / "config.yaml")) ? generation::causal
                                                                                         : generation::legacy;
}

token2wav::token2wav(const std::filesystem::path& folder, const noise_tables& noise, token2wav_options options,
                     at::Device device)
    : kind_(generation_of(folder)), options_(options), device_(device) {
  flow_ = std::make_unique<flow>(read_state_dict(followed(folder / "flow.pt")).to(device, options.acoustics),
                                 flow_config::open(followed(folder / "flow.yaml")), options.steps, noise.flow);
  if (options.bfloat16_products) flow_->use_bfloat16();
  ear_ = std::make_unique<voice_ear>(read_onnx(followed(folder / "speech_tokenizer_v2_25hz.onnx")),
                                     read_onnx(followed(folder / "campplus.onnx")), device, options.speaker_windows);
  const auto vocoder = read_vocoder(followed(folder / "hift.pt")).to(device);
  if (kind_ == generation::causal) {
    auto network = std::make_shared<hift_causal>(vocoder, hift_config::open(followed(folder / "config.yaml")));
    if (options.bfloat16_products) network->use_bfloat16();
    causal_ = std::make_unique<bounded_vocoder>(network, noise.excitation.to(device), options.vocoder_block_frames);
  } else {
    auto network = std::make_shared<hift_original>(vocoder);
    if (options.bfloat16_products) network->use_bfloat16();
    legacy_ = std::make_unique<legacy_vocoder>(network);
  }
}

std::shared_ptr<const voice> token2wav::prepare(voice_features heard) const {
  auto made = std::make_shared<voice>();
  made->heard = std::move(heard);
  made->speaker = flow_->project_speaker(made->heard.speaker);
  const auto tokens = made->heard.tokens.cpu();
  const auto silence = at::full({lookahead}, silence_speech_token, tokens.options());
  const auto ahead = kind_ == generation::legacy ? silence : at::cat({tokens, silence}, 0).narrow(0, 0, lookahead);
  flow_->begin({&made->prompt, at::cat({tokens, ahead}, 0), made->speaker, false, made->heard.mel});
  return made;
}

token2wav::stream token2wav::start(std::shared_ptr<const voice> speaker) const {
  stream made;
  made.acoustic = speaker->prompt;
  made.speaker = std::move(speaker);
  if (causal_)
    made.vocoder = causal_->start();
  else
    made.vocoder = legacy_vocoder::state();
  return made;
}

std::size_t token2wav::vocoder_bytes() const {
  const auto bins = flow_->estimator().bins();
  auto numbers = std::int64_t{0};
  if (causal_) // each frame's mel and excitation
    numbers = (causal_->history_frames() + causal_->delay_frames() + options_.vocoder_block_frames) *
              (bins + causal_->frame_samples());
  else // each frame's mel, excitation and samples
    numbers = legacy_vocoder::overlap_frames * (bins + 2 * legacy_->network().trunk().config().frame_samples());
  return static_cast<std::size_t>(numbers) * sizeof(float);
}

std::vector<at::Tensor> token2wav::mels_of(std::span<const job> jobs) const {
  std::vector<at::Tensor> mels(jobs.size(), at::zeros({1, flow_->estimator().bins(), 0}, at::TensorOptions(device_)));
  std::vector<flow::job> batch;
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const auto& [session, tokens, last, chance, noise] = jobs[i];
    if (tokens.empty()) continue;
    const auto ids = at::tensor(at::IntArrayRef(tokens.data(), tokens.size()), at::kLong);
    batch.push_back({&session->acoustic, ids, session->speaker->speaker, last, {}});
    rows.push_back(i);
  }
  if (batch.empty()) return mels;
  const auto made = flow_->run(batch);
  const auto rule = kind_ == generation::causal ? flow::trim_rule::per_rate : flow::trim_rule::packed;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    mels[rows[k]] = made[k];
    auto& session = *jobs[rows[k]].session;
    flow_->trim(session.acoustic, session.speaker->prompt_rows(), rule);
  }
  return mels;
}

/// What the older generation's vocoder draws for each job: a quarter of a million numbers a second of sound, on all
/// threads. Jobs that share a source draw one after another.
std::vector<at::Tensor> token2wav::draw_noise(std::span<const job> jobs, const std::vector<at::Tensor>& mels) const {
  std::vector<at::Tensor> noise(jobs.size());
  std::map<random_source*, std::vector<std::size_t>> by_source;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].noise.defined())
      noise[i] = legacy_->prepared(jobs[i].noise);
    else if (jobs[i].chance == nullptr)
      throw std::logic_error("token2wav: this generation needs noise");
    else
      by_source[jobs[i].chance].push_back(i);
  }
  const std::vector sources(by_source.begin(), by_source.end());
  cpu::parallel_for(0, std::ssize(sources), 1, [&](std::int64_t begin, std::int64_t end) {
    const c10::InferenceMode guard;
    for (const auto& [chance, users] :
         std::span(sources).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)))
      for (const auto i : users) {
        const auto& state = std::get<legacy_vocoder::state>(jobs[i].session->vocoder);
        noise[i] = legacy_->prepared(gaussian_noise(*chance, legacy_->noise_samples(state, mels[i].size(2)),
                                                    legacy_->network().trunk().harmonics()));
      }
  });
  return noise;
}

std::vector<at::Tensor> token2wav::vocode(std::span<const job> jobs, const std::vector<at::Tensor>& mels) const {
  if (causal_) {
    std::vector<bounded_vocoder::job> batch;
    for (std::size_t i = 0; i < jobs.size(); ++i)
      batch.push_back({&std::get<bounded_vocoder::state>(jobs[i].session->vocoder), mels[i], jobs[i].last});
    return causal_->stream(batch);
  }
  const auto noise = draw_noise(jobs, mels);
  std::vector<legacy_vocoder::job> batch;
  for (std::size_t i = 0; i < jobs.size(); ++i)
    batch.push_back({&std::get<legacy_vocoder::state>(jobs[i].session->vocoder), mels[i], noise[i], jobs[i].last});
  return legacy_->stream(batch);
}

std::vector<at::Tensor> token2wav::run(std::span<const job> jobs, trace* seen) const {
  for (const auto& job : jobs) {
    if (job.session->ended) throw std::logic_error("token2wav: the stream has ended");
    if (!job.last && static_cast<std::int64_t>(job.tokens.size()) <= lookahead)
      throw std::logic_error("token2wav: a call that is not the last needs more than three tokens");
  }
  std::vector<stream>
      before; // shares the tensors, which streams replace, and rows, which nobody writes to while it does
  std::vector<random_source::state> rng_before(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    before.push_back(*jobs[i].session);
    if (jobs[i].chance != nullptr) rng_before[i] = jobs[i].chance->where();
  }
  try {
    return extend(jobs, seen);
  } catch (...) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      *jobs[i].session = std::move(before[i]);
      if (jobs[i].chance != nullptr) jobs[i].chance->go_on_from(rng_before[i]);
    }
    throw;
  }
}

std::vector<at::Tensor> token2wav::extend(std::span<const job> jobs, trace* seen) const {
  const auto mels = mels_of(jobs);
  if (seen != nullptr) seen->mels = mels;
  auto speech = on_cpu(vocode(jobs, mels));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& session = *jobs[i].session;
    session.ended = jobs[i].last;
    if (!all_numbers(speech[i])) throw std::runtime_error("token2wav: the sound holds values that are not numbers");
    if (speech[i].size(0) == 0) continue;
    if (options_.leading_silence && !session.sounded && !jobs[i].last)
      speech[i] = at::constant_pad_nd(speech[i], {silence_frames * hift_config().frame_samples(), 0});
    session.sounded = true;
  }
  return speech;
}

} // namespace parley::inference::speech
