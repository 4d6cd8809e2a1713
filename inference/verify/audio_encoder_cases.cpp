#include "inference/audio/encoder.hpp"
#include "inference/audio/mel.hpp"
#include "inference/audio/projector.hpp"
#include "inference/verify/families.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

struct audio_model {
  explicit audio_model(golden_set& files)
      : mel(files.config().audio.mel_bins), encode(files.config().audio, files.view("apm.")),
        project(files.config().audio.pool_step, files.view("audio_projection_layer.")) {}

  audio::mel_extractor mel;
  audio::encoder encode;
  audio::projector project;
};

/// The pieces of one reference call, padded with zeros to the longest.
std::vector<audio::clip_piece> padded_pieces(golden_set& files, const audio_model& model, const nlohmann::json& clips) {
  std::vector<at::Tensor> mels;
  std::int64_t longest = 0;
  for (const auto& reference : clips)
    for (auto& piece : model.mel.offline(files.clip(reference))) {
      longest = std::max(longest, piece.size(0));
      mels.push_back(std::move(piece));
    }
  std::vector<audio::clip_piece> result;
  for (const auto& mel : mels)
    result.push_back({at::constant_pad_nd(mel, {0, 0, 0, longest - mel.size(0)}), mel.size(0)});
  return result;
}

void replay_offline(golden_set& files, const std::string& stem, const audio_model& model, const nlohmann::json& c,
                    case_check& check) {
  auto pieces = padded_pieces(files, model, c.at("clips"));
  audio::encoder_trace trace;
  auto encoded = model.encode.offline(pieces, c.at("chunk_length").get<double>(), &trace);
  std::vector<std::int64_t> frames;
  for (const auto& piece : pieces) frames.push_back(piece.frames);
  check.equal("lens", frames, c.at("lens").at(0).get<std::vector<std::int64_t>>());
  auto rows = model.project.project(encoded, frames);
  const auto& golden = files.tensors(stem);
  auto name = c.at("name").get<std::string>();
  std::vector<std::int64_t> tokens;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    tokens.push_back(rows[i].size(0));
    check.close("rows", rows[i], golden_of(golden, "off." + name + ".0." + std::to_string(i)));
  }
  check.equal("tokens", tokens, c.at("tokens").at(0).get<std::vector<std::int64_t>>());
  for (std::size_t k = 0; has_golden(golden, name + ".hidden." + std::to_string(k)); ++k)
    check.close("hidden", trace.hiddens.at(k), golden_of(golden, name + ".hidden." + std::to_string(k)));
}

void check_cache(const audio::encoder_cache& cache, int layers, const safetensors_file& golden, const std::string& key,
                 case_check& check) {
  for (std::int64_t l = 0; l < layers; ++l) {
    auto number = std::to_string(l);
    if (!has_golden(golden, key + ".k" + number)) continue;
    check.close("keys", cache.keys(l), golden_of(golden, key + ".k" + number));
    check.close("values", cache.values(l), golden_of(golden, key + ".v" + number));
  }
}

void replay_stream(golden_set& files, const std::string& stem, const audio_model& model, const nlohmann::json& c,
                   report& out) {
  audio::mel_stream stream;
  auto cache = model.encode.make_cache();
  auto samples = files.clip(c.at("audio").get<std::string>(), 0, 0);
  const auto& golden = files.tensors(stem);
  for (const auto& chunk : c.at("chunks")) {
    auto number = chunk.at("i").get<int>();
    auto key = "st." + c.at("name").get<std::string>() + "." + std::to_string(number);
    out.run(stem, key, thinker_tolerance, [&](case_check& check) {
      auto begin = chunk.at("samples").at(0).get<std::size_t>();
      auto end = chunk["samples"].at(1).get<std::size_t>();
      audio::mel_extractor::stream_input input{&stream, std::span(samples).subspan(begin, end - begin)};
      auto mel = model.mel.stream(std::span(&input, 1)).front().mel;
      check.equal("mel_frames", mel.size(0), chunk.at("mel_frames").get<std::int64_t>());
      check.equal("kv_before", cache.length, chunk.at("kv_before").get<std::int64_t>());
      audio::encoder_trace trace;
      audio::stream_chunk unit{&cache, mel, number == 0 ? 0 : 1, 1};
      auto encoded = model.encode.stream(std::span(&unit, 1), &trace);
      check.equal("kv_after", cache.length, chunk.at("kv_after").get<std::int64_t>());
      check.equal("pos_start", cache.length - encoded.front().size(0), chunk.at("pos_start").get<std::int64_t>());
      auto frames = mel.size(0);
      auto rows = model.project.project(encoded, std::span(&frames, 1)).front();
      check.equal("tokens", rows.size(0), chunk.at("tokens").get<std::int64_t>());
      if (has_golden(golden, key + ".emb")) check.close("emb", rows, golden_of(golden, key + ".emb"));
      if (has_golden(golden, key + ".after_conv"))
        check.close("after_conv", trace.after_conv.t(), golden_of(golden, key + ".after_conv"));
      if (has_golden(golden, key + ".apm_out"))
        check.close("apm_out", encoded.front(), golden_of(golden, key + ".apm_out"));
      check_cache(cache, files.config().audio.layers, golden, key, check);
    });
  }
}

} // namespace

void replay_audio_encoder(golden_set& files, const std::string& stem, report& out) {
  audio_model model(files);
  for (const auto& [section, content] : files.cases(stem).items()) {
    if (section == "offline")
      for (const auto& c : content)
        out.run(stem, "off." + c.at("name").get<std::string>(), thinker_tolerance,
                [&](case_check& check) { replay_offline(files, stem, model, c, check); });
    else if (section == "streaming")
      for (const auto& c : content) replay_stream(files, stem, model, c, out);
    else
      out.unknown(stem, section);
  }
}

} // namespace parley::inference::verify
