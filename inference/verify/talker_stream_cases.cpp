#include "inference/speech/pcm16.hpp"
#include "inference/speech/speech_driver.hpp"
#include "inference/verify/talker_set.hpp"
#include "inference/vocoder/hift_original.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

namespace {

using speech::token2wav;
using talker_tolerance::stream;

std::shared_ptr<const speech::voice> prepare(talker_set& set, const token2wav& model, const std::string& wav) {
  const auto prompt = set.prompt_of(wav);
  return model.prepare(model.ear().hear(set.file_samples(prompt), set.entry(prompt).at("sample_rate").get<int>()));
}

std::string voice_of(talker_set& set, const std::string& name) {
  return set.entry(name).value("voice", set.entry("_set").at("voice").get<std::string>());
}

/// One session's stream, with the mel of its last call.
struct voice_stream {
  const token2wav& model;
  token2wav::stream session;
  token2wav::trace trace;

  voice_stream(const token2wav& on, std::shared_ptr<const speech::voice> voice)
      : model(on), session(on.start(std::move(voice))) {}

  at::Tensor run(const speech::window_call& call, const at::Tensor& noise = {}) {
    const token2wav::job job{&session, call.tokens, call.last, nullptr, noise};
    return model.run({&job, 1}, &trace)[0];
  }
};

at::Tensor through_pcm16(const at::Tensor& samples) {
  auto result = at::empty_like(samples).contiguous();
  const auto from = samples.contiguous();
  for (std::int64_t i = 0; i < from.numel(); ++i)
    result.mutable_data_ptr<float>()[i] =
        static_cast<float>(speech::to_stream_pcm16(from.const_data_ptr<float>()[i])) / 32768.0F;
  return result;
}

/// A duplex unit's sound as the reference's server sends it: 16 bits, zeros in front if short and not the last.
at::Tensor duplex_sound(const std::vector<at::Tensor>& pieces, bool last) {
  constexpr std::int64_t second = 24000;
  auto sound = pieces.empty() ? at::zeros({0}) : through_pcm16(at::cat(pieces, 0));
  if (!last && !pieces.empty() && sound.size(0) < second)
    sound = at::constant_pad_nd(sound, {second - sound.size(0), 0});
  return sound;
}

void check_call(const speech::window_call& mine, const nlohmann::json& golden, case_check& check) {
  const bool pair = golden.is_array();
  check.equal("tokens of a call", mine.tokens.size(), (pair ? golden.at(0) : golden.at("n_tokens")).get<std::size_t>());
  check.equal("last", mine.last, (pair ? golden.at(1) : golden.at("last")).get<bool>());
}

} // namespace

void replay_stream_turn(talker_set& set, const std::string& name, report& out) {
  out.run(name, "turn", stream, [&](case_check& check) {
    const auto voice = prepare(set, set.causal(), voice_of(set, name));
    voice_stream replay(set.causal(), voice);
    speech::turn_windows windows;
    std::vector<speech::window_call> calls;
    for (auto token : as_tokens(set.tensor(name, "tokens")))
      if (auto call = windows.push(token)) calls.push_back(*call);
    if (auto call = windows.finish()) calls.push_back(*call);
    const auto& recorded = set.entry(name).at("calls");
    check.equal("calls", calls.size(), recorded.size());
    for (std::size_t n = 0; n < std::min(calls.size(), recorded.size()); ++n) {
      check_call(calls[n], recorded[n], check);
      const auto wav = replay.run(calls[n]);
      check.close("mel", replay.trace.mels[0], set.golden(name, "mel_" + std::to_string(n)));
      check.close("wav", wav.unsqueeze(0), set.golden(name, "wav_" + std::to_string(n)));
      if (recorded[n].contains("shapes")) {
        const auto rows = recorded[n]["shapes"]["conformer_att_cache"][3].get<std::int64_t>();
        check.equal("encoder rows", replay.session.acoustic.encoder.attention.back().rows(), rows);
        check.equal("estimator rows", replay.session.acoustic.steps[0].rows(), rows);
      }
    }
    check.close("prompt_att_cache_step0_block0", voice->prompt.steps[0].attention[0].joined(),
                set.golden(name, "prompt_att_cache_step0_block0"));
  });
}

void replay_stream_duplex(talker_set& set, const std::string& name, report& out) {
  out.run(name, "units", stream, [&](case_check& check) {
    const auto voice = prepare(set, set.causal(), voice_of(set, name));
    voice_stream replay(set.causal(), voice);
    speech::duplex_windows windows(name != "stream_duplex_class");
    const auto tokens = as_tokens(set.tensor(name, "tokens"));
    std::size_t at = 0, n = 0;
    for (const auto& unit : set.entry(name).at("calls")) {
      const auto fresh = unit.at("n_new").get<std::size_t>();
      const bool last = unit.at("last");
      const auto calls = windows.push(std::span(tokens).subspan(at, fresh), last);
      at += fresh;
      const auto& recorded = unit.at("stream_calls");
      check.equal("calls", calls.size(), recorded.size());
      std::vector<at::Tensor> pieces;
      for (std::size_t k = 0; k < std::min(calls.size(), recorded.size()); ++k) {
        check_call(calls[k], recorded[k], check);
        pieces.push_back(replay.run(calls[k]));
      }
      check.equal("returned_none", calls.empty(), unit.at("returned_none").get<bool>());
      check.close("wav", duplex_sound(pieces, last), set.golden(name, "wav_" + std::to_string(n++)));
      const auto waiting = last ? std::span<const std::int64_t>() : windows.waiting();
      check.equal("buffer_after", std::vector(waiting.begin(), waiting.end()), as_tokens(unit.at("buffer_after")));
      if (last) replay.session = set.causal().start(voice);
    }
  });
}

void replay_stream_flush(talker_set& set, const std::string& name, report& out) {
  out.run(name, "flush", stream, [&](case_check& check) {
    voice_stream replay(set.causal(), prepare(set, set.causal(), voice_of(set, name)));
    check.close("wav_0", replay.run({as_tokens(set.tensor(name, "tokens")), false}).unsqueeze(0),
                set.golden(name, "wav_0"));
    check.close("wav_flush", replay.run({{}, true}).unsqueeze(0), set.golden(name, "wav_flush"));
  });
}

void replay_stream_chat(talker_set& set, const std::string& name, report& out) {
  out.run(name, "answer", stream, [&](case_check& check) {
    voice_stream replay(set.causal(), prepare(set, set.causal(), voice_of(set, name)));
    const auto calls = speech::whole_windows(as_tokens(set.tensor(name, "tokens")));
    const auto& recorded = set.entry(name).at("calls");
    check.equal("calls", calls.size(), recorded.size());
    std::vector<at::Tensor> pieces;
    for (std::size_t n = 0; n < calls.size(); ++n) {
      check_call(calls[n], recorded.at(n), check);
      pieces.push_back(replay.run(calls[n]));
    }
    check.close("wav", at::cat(pieces, 0), set.golden(name, "wav"));
  });
}

void replay_stream_legacy(talker_set& set, const std::string& name, report& out) {
  out.run(name, "stream", stream, [&](case_check& check) {
    const auto model = set.load(token2wav::generation::legacy, set.steps());
    check.exact("generation", model->kind() == token2wav::generation::legacy);
    const auto voice = prepare(set, *model, voice_of(set, name));
    const auto first = voice->prompt.encoder.attention[0].joined();
    check.close("setup_conformer_att_l0", first.repeat({1, 2, 1}).unsqueeze(0),
                set.golden(name, "setup_conformer_att_l0"), talker_tolerance::module);
    voice_stream replay(*model, voice);
    const auto calls = speech::whole_windows(as_tokens(set.tensor(name, "tokens")));
    const auto& recorded = set.entry(name).at("calls");
    check.equal("calls", calls.size(), recorded.size());
    for (std::size_t n = 0; n < std::min(calls.size(), recorded.size()); ++n) {
      check_call(calls[n], recorded[n], check);
      const auto number = std::to_string(n);
      const auto noise = set.tensor(name, "noise_i8_" + number).to(at::kFloat).unsqueeze(0) *
                         set.entry(name).at("noise_scale").get<double>();
      check.close("wav_" + number, replay.run(calls[n], noise).unsqueeze(0), set.golden(name, "wav_" + number));
      const auto rows = recorded[n]["shapes"]["conformer_att_cache"][3].get<std::int64_t>();
      check.equal("encoder rows", replay.session.acoustic.encoder.attention.back().rows(), rows);
    }
  });
}

void replay_nonstream_call(talker_set& set, const std::string& name, report& out) {
  out.run(name, "utterance", stream, [&](case_check& check) {
    const auto& model = set.causal();
    const auto voice = prepare(set, model, voice_of(set, name));
    speech::flow::state fresh;
    const auto tokens = at::cat({voice->heard.tokens, set.tensor(name, "tokens").flatten().to(at::kLong)}, 0);
    const speech::flow::job job{&fresh, tokens, voice->speaker, true, voice->heard.mel};
    const auto mel = model.acoustic().run({&job, 1})[0].slice(2, voice->prompt_rows());
    const speech::hift_original vocoder(
        speech::read_vocoder(set.folder(token2wav::generation::causal) / "hift_original.pt"));
    const auto scale = set.entry("vocoder_original").value("noise_scale", 0.03125);
    const auto noise =
        set.tensor(name, "noise_i8").to(at::kFloat).unsqueeze(0) * set.entry(name).value("noise_scale", scale);
    check.close("wav", vocoder.run(mel, noise).speech.squeeze(0), set.golden(name, "wav"));
  });
}

} // namespace parley::inference::verify
