#include "inference/verify/talker_set.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

using speech::token2wav;

std::shared_ptr<const speech::hift_causal> load_causal(talker_set& set) {
  const auto folder = set.folder(token2wav::generation::causal);
  return std::make_shared<speech::hift_causal>(speech::read_vocoder(folder / "hift.pt"),
                                               speech::hift_config::open(folder / "config.yaml"));
}

void check_state(const speech::bounded_vocoder::state& mine, const nlohmann::json& golden,
                 std::int64_t samples_per_frame, case_check& check) {
  auto same = [&](const char* key, std::int64_t value) { check.equal(key, value, golden.at(key).get<std::int64_t>()); };
  same("mel_offset", mine.mel_offset);
  same("source_offset", mine.source_offset);
  same("source_end", mine.source_end);
  same("speech_offset", mine.emitted * samples_per_frame);
  same("finalized", mine.finalized ? 1 : 0);
  check.equal("mel", mine.mel.sizes().vec(), golden.at("mel").get<std::vector<std::int64_t>>());
  check.equal("source", mine.source.unsqueeze(1).sizes().vec(), golden.at("source").get<std::vector<std::int64_t>>());
}

/// Collects what a stream still holds of its excitation, with its position.
void collect(const speech::bounded_vocoder::state& from, std::int64_t samples_per_frame, at::Tensor& to) {
  to.narrow(1, from.source_offset * samples_per_frame, from.source.size(1)).copy_(from.source);
}

} // namespace

void replay_vocoder_causal(talker_set& set, const std::string& name, report& out) {
  out.run(name, "stream", talker_tolerance::vocoder, [&](case_check& check) {
    const auto& entry = set.entry(name);
    const auto network = load_causal(set);
    const speech::bounded_vocoder vocoder(network, set.noise().excitation,
                                          entry.at("block_frames").get<std::int64_t>());
    const auto& limits = entry.at("limits");
    check.equal("history", vocoder.history_frames(), limits.at("decoder_history_frames").get<std::int64_t>());
    check.equal("delay", vocoder.delay_frames(), limits.at("delay_frames").get<std::int64_t>());
    check.equal("f0_left", network->f0_left(), limits.at("f0_left_frames").get<std::int64_t>());
    check.equal("f0_right", network->f0_right(), limits.at("f0_right_frames").get<std::int64_t>());

    const auto mel = set.tensor(name, "mel");
    check.close("f0", network->f0(mel, true), set.golden(name, "f0"));
    auto session = vocoder.start();
    auto source = at::zeros({1, mel.size(2) * vocoder.frame_samples()});
    std::int64_t from = 0;
    const auto& pieces = entry.at("pieces");
    for (std::size_t n = 0; n < pieces.size(); ++n) {
      const auto frames = pieces[n].get<std::int64_t>();
      const speech::bounded_vocoder::job job{&session, mel.narrow(2, from, frames), false};
      const auto key = "speech_" + std::to_string(n);
      check.close(key, vocoder.stream({&job, 1})[0], set.golden(name, key));
      check_state(session, entry.at("cache_after")[n], vocoder.frame_samples(), check);
      collect(session, vocoder.frame_samples(), source);
      from += frames;
    }
    check.close("phase_before_final", session.phase.unsqueeze(1), set.golden(name, "phase_before_final"));
    const speech::bounded_vocoder::job last{&session, mel.narrow(2, from, 0), true};
    check.close("speech_final", vocoder.stream({&last, 1})[0], set.golden(name, "speech_final"));
    collect(session, vocoder.frame_samples(), source);
    check.close("source", source.unsqueeze(1), set.golden(name, "source"));
  });
}

void replay_vocoder_causal_decode(talker_set& set, const std::string& name, report& out) {
  out.run(name, "decode", talker_tolerance::vocoder, [&](case_check& check) {
    const auto network = load_causal(set);
    const auto mel = set.tensor(name, "mel"), source = set.tensor(name, "source").squeeze(1);
    check.close("speech_full", network->decode(mel, source, true), set.golden(name, "speech_full"));
    constexpr std::int64_t part = 40;
    const auto samples = part * network->trunk().config().frame_samples();
    check.close("speech_partial40", network->decode(mel.narrow(2, 0, part), source.narrow(1, 0, samples), false),
                set.golden(name, "speech_partial40"));
  });
}

void replay_vocoder_original(talker_set& set, const std::string& name, report& out) {
  out.run(name, "vocode", talker_tolerance::original_vocoder, [&](case_check& check) {
    const speech::hift_original network(
        speech::read_vocoder(set.folder(token2wav::generation::causal) / "hift_original.pt"));
    const auto scale = set.entry(name).at("noise_scale").get<double>();
    const auto mel = set.tensor(name, "mel");
    check.close("f0", network.f0(mel), set.golden(name, "f0"), talker_tolerance::module);
    auto runs = 0;
    for (const std::string n : {"0", "1"}) {
      if (!set.has(name, "noise_i8_" + n)) continue;
      ++runs;
      const auto noise = set.tensor(name, "noise_i8_" + n).to(at::kFloat).unsqueeze(0) * scale;
      const auto frames = noise.size(1) / network.trunk().config().frame_samples();
      const auto cache = set.has(name, "cache_source_" + n) ? set.tensor(name, "cache_source_" + n) : at::Tensor();
      const auto made = network.run(mel.narrow(2, 0, frames), noise, cache);
      check.close("source_" + n, made.source, set.golden(name, "source_" + n));
      check.close("speech_" + n, made.speech, set.golden(name, "speech_" + n));
    }
    check.exact("no recorded run", runs > 0);
  });
}

} // namespace parley::inference::verify
