#include "inference/audio/mel.hpp"
#include "inference/verify/families.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

/// Pieces as the reference stacks them: [pieces, bins, longest], padded with zeros.
at::Tensor stacked(const std::vector<at::Tensor>& pieces) {
  return at::pad_sequence(pieces, true).transpose(1, 2);
}

at::Tensor chosen_frames(const at::Tensor& mel, const std::vector<std::int64_t>& frames) {
  return mel.index_select(-1, at::tensor(frames, at::kLong));
}

void replay_offline(golden_set& files, const std::string& stem, const nlohmann::json& c, case_check& check) {
  audio::mel_extractor mel(files.config().audio.mel_bins);
  std::vector<std::vector<float>> clips;
  for (const auto& reference : c.at("audios")) clips.push_back(files.clip(reference));
  std::vector<std::span<const float>> spans(clips.begin(), clips.end());
  std::vector<at::Tensor> pieces;
  std::vector<std::int64_t> lens;
  for (const auto& clip : mel.offline(spans))
    for (const auto& piece : clip) {
      pieces.push_back(piece);
      lens.push_back(piece.size(0));
    }
  auto all = stacked(pieces);
  check.equal("shape", all.sizes().vec(), c.at("shape").get<std::vector<std::int64_t>>());
  check.equal("lens", lens, c.at("lens").at(0).get<std::vector<std::int64_t>>());
  auto name = c.at("name").get<std::string>();
  auto golden = golden_of(files.tensors(stem), "off." + name);
  if (c.contains("frames"))
    check.close("mel", chosen_frames(all, c["frames"].get<std::vector<std::int64_t>>()), golden);
  else
    check.close("mel", all, golden);
  auto floor = "off_floor." + name;
  if (const auto recorded = find_golden(files.tensors(stem), floor))
    check.close("mel at the floor", stacked(mel.offline(spans, audio::mel_clip::floor).front()), *recorded);
}

audio::mel_stream_config stream_config(const nlohmann::json& c) {
  audio::mel_stream_config config;
  config.chunk_ms = c.at("chunk_ms");
  config.first_chunk_ms = c.at("first_chunk_ms");
  config.redundancy_frames = c.at("cnn_redundancy_frames");
  config.sliding_window = c.at("enable_sliding_window");
  config.trigger_seconds = c.at("trigger_seconds");
  config.slide_seconds = c.at("slide_seconds");
  return config;
}

void check_counters(const audio::mel_stream_info& info, const nlohmann::json& c, case_check& check) {
  auto same = [&](const char* key, std::int64_t mine) { check.equal(key, mine, c.at(key).get<std::int64_t>()); };
  same("chunk_number", info.chunk_number);
  same("emitted_frames", info.emitted_frames);
  same("stable_T", info.stable_frames);
  same("T_full", info.total_frames);
  same("base_T", info.base_frame);
  same("stable_T_global", info.base_frame + info.stable_frames);
  same("buffer_len_samples", info.buffer_samples);
  same("left_samples_dropped", info.dropped_samples);
  same("core_start", info.core_begin);
  same("core_end", info.core_end);
}

void replay_stream(golden_set& files, const std::string& stem, const nlohmann::json& c, report& out) {
  audio::mel_extractor mel(files.config().audio.mel_bins);
  audio::mel_stream stream(stream_config(c.at("config")));
  auto samples = files.clip(c.at("audio").get<std::string>(), 0, 0);
  auto name = c.at("name").get<std::string>();
  for (const auto& chunk : c.at("chunks")) {
    auto key = "st." + name + "." + std::to_string(chunk.at("i").get<int>());
    out.run(stem, key, thinker_tolerance, [&](case_check& check) {
      auto begin = chunk.at("samples").at(0).get<std::size_t>();
      auto end = chunk["samples"].at(1).get<std::size_t>();
      check.equal("need", static_cast<std::size_t>(stream.next_need()), end - begin);
      audio::mel_extractor::stream_input input{&stream, std::span(samples).subspan(begin, end - begin)};
      auto result = mel.stream(std::span(&input, 1)).front();
      check_counters(result.info, chunk, check);
      auto mine = result.mel.defined() ? result.mel.t() : at::Tensor();
      if (!c.at("full").get<bool>()) {
        auto frames = mine.size(1);
        mine = chosen_frames(mine, {0, 1, 50, frames - 2, frames - 1});
      }
      check.close("mel", mine, golden_of(files.tensors(stem), key));
    });
  }
}

} // namespace

void replay_mel(golden_set& files, const std::string& stem, report& out) {
  out.run(stem, "mel_filters", thinker_tolerance, [&](case_check& check) {
    auto bins = files.config().audio.mel_bins;
    auto key = "mel_filters_" + std::to_string(audio::mel_window_samples / 2 + 1) + "x" + std::to_string(bins);
    check.close("filters", audio::mel_extractor(bins).filters(), golden_of(files.tensors(stem), key));
  });
  for (const auto& [section, content] : files.cases(stem).items()) {
    if (section == "offline")
      for (const auto& c : content)
        out.run(stem, "off." + c.at("name").get<std::string>(), thinker_tolerance,
                [&](case_check& check) { replay_offline(files, stem, c, check); });
    else if (section == "streaming")
      for (const auto& c : content) replay_stream(files, stem, c, out);
    else
      out.unknown(stem, section);
  }
}

} // namespace parley::inference::verify
