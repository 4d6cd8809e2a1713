#include "inference/speech/pcm16.hpp"
#include "inference/speech/resample.hpp"
#include "inference/verify/talker_set.hpp"
#include "inference/voice/features.hpp"

#include <ATen/ATen.h>

namespace parley::inference::verify {

using talker_tolerance::module;

void replay_prompt(talker_set& set, const std::string& name, report& out) {
  const auto rate = set.entry(name).at("sample_rate").get<int>();
  const auto file = set.file_samples(name);
  const auto& ear = set.causal().ear();
  // The input of a step: the recorded one if it is whole, else the result of the step before.
  const auto whole = [&](const char* key, const at::Tensor& mine) {
    return set.has(name, key) ? set.tensor(name, key) : mine;
  };
  const auto mine_16k = speech::resample(file[0], rate, speech::voice_rate);
  const auto mine_24k = speech::resample(file.mean(0, true), rate, speech::mel_rate);
  const auto audio = whole("audio_16k", mine_16k);
  const auto mine_mel = speech::tokenizer_log_mel(audio), mine_fbank = speech::speaker_fbank(audio);
  out.run(name, "resampling", module, [&](case_check& check) {
    check.close("audio_16k", mine_16k, set.golden(name, "audio_16k"));
    check.close("audio_24k", mine_24k, set.golden(name, "audio_24k"));
  });
  out.run(name, "features", module, [&](case_check& check) {
    check.close("s3_logmel", mine_mel, set.golden(name, "s3_logmel"));
    check.close("fbank", mine_fbank, set.golden(name, "fbank"));
    check.close("fbank_centered", mine_fbank - mine_fbank.mean(0, true), set.golden(name, "fbank_centered"));
    check.close("prompt_mel_raw", speech::prompt_log_mel(whole("audio_24k", mine_24k)[0]).unsqueeze(0),
                set.golden(name, "prompt_mel_raw"));
  });
  out.run(name, "speech tokens", module, [&](case_check& check) {
    const auto mel = whole("s3_logmel", mine_mel);
    check.close("s3_project_down", ear.tokenizer().project(mel), set.golden(name, "s3_project_down"));
    check.equal("s3_tokens", as_tokens(ear.tokenizer().tokens(mel)),
                as_tokens(set.tensor(name, "s3_tokens").flatten()));
  });
  out.run(name, "speaker vector", module, [&](case_check& check) {
    check.close("spk_emb", ear.speaker().embed(whole("fbank", mine_fbank)).unsqueeze(0), set.tensor(name, "spk_emb"));
  });
  out.run(name, "voice", module, [&](case_check& check) {
    const auto heard = ear.hear(file, rate);
    check.equal("s3_tokens", as_tokens(heard.tokens), as_tokens(set.tensor(name, "s3_tokens").flatten()));
    check.close("spk_emb", heard.speaker.unsqueeze(0), set.tensor(name, "spk_emb"));
    check.close("prompt_mel", heard.mel.unsqueeze(0), set.tensor(name, "prompt_mel"));
  });
}

void replay_s3_long(talker_set& set, const std::string& name, report& out) {
  out.run(name, "speech tokens", 0, [&](case_check& check) {
    const auto mel = set.tensor(name, "mel_i8").to(at::kFloat) * set.entry(name).at("mel_scale").get<double>();
    const auto tokens = set.causal().ear().tokenizer().tokens(mel);
    check.equal("tokens", as_tokens(tokens), as_tokens(set.tensor(name, "tokens").flatten()));
  });
}

void replay_pcm_unit(talker_set& set, const std::string& name, report& out) {
  out.run(name, "rounding", 0, [&](case_check& check) {
    const auto x = set.tensor(name, "x").contiguous();
    std::vector<std::int64_t> streamed, filed;
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      streamed.push_back(speech::to_stream_pcm16(x.const_data_ptr<float>()[i]));
      filed.push_back(speech::to_file_pcm16(x.const_data_ptr<float>()[i]));
    }
    check.equal("stream_pcm", streamed, as_tokens(set.tensor(name, "stream_pcm")));
    check.equal("wav_file_pcm", filed, as_tokens(set.tensor(name, "wav_file_pcm")));
  });
}

} // namespace parley::inference::verify
