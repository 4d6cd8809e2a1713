#include "inference/speech/speech_driver.hpp"
#include "inference/verify/chat_replay.hpp"
#include "inference/verify/e2e_set.hpp"
#include "inference/verify/speech_replay.hpp"
#include "inference/verify/talker_set.hpp"

#include <ATen/ATen.h>

#include <algorithm>

// Whole chat answers of the reference's `chat()`, spoken once all words are known.
namespace parley::inference::verify {

namespace {

using nlohmann::json;

/// The tokens of an answer, with the hidden states of those that were fed.
struct answer_words {
  std::vector<token_id> sequence; ///< the tokens of prompt and answer
  at::Tensor hidden;              ///< of its first rows
  std::size_t begin = 0, end = 0; ///< the range that is spoken

  /// False if the reference has fewer states than tokens: it then fails.
  bool speakable() const { return static_cast<std::int64_t>(end) <= hidden.size(0); }
};

answer_words think(e2e_set& set, const json& recorded, case_check& check) {
  const auto& kw = recorded.at("kwargs");
  const auto& text = set.model().text();
  auto talk = read_talk(set.files(), recorded.at("messages"), kw.value("omni_mode", false) ? "" : "\n",
                        picture_arguments::of(kw));
  chat::template_options how;
  how.enable_thinking = kw.value("enable_thinking", false);
  how.use_tts_template = kw.value("use_tts_template", false) || !talk.sounds.empty();
  const auto rendered = chat::apply_template(talk.messages, how);
  check.equal("prompt", rendered.text, recorded.at("prompt").get<std::string>());
  chat_replay session(set.model());
  const auto prompt = session.encode(rendered, talk, false);
  check.equal("prompt_ids", prompt.ids, recorded.at("prompt_ids").get<std::vector<token_id>>());

  const auto& draws = recorded.at("llm_draws");
  auto chance = numbers_of(draws);
  llm::chat_sampling options;
  options.greedy = !kw.at("do_sample").get<bool>();
  options.exact_top_k = false;
  std::vector<at::Tensor> states{session.prefill(prompt, talk)};
  std::vector<llm::draw_record> mine;
  const auto tokens = session.draw_answer(states.front(), kw.at("max_new_tokens"), options, chance, &states, &mine);
  check.equal("generated_ids", tokens, recorded.at("generated_ids").get<std::vector<token_id>>());
  for (std::size_t i = 0; i < std::min(draws.size(), mine.size()); ++i) {
    check.equal("sampled token", mine[i].token, draws[i].at("token").get<token_id>());
    check.equal("tokens with a probability", mine[i].candidates, draws[i].at("candidates").get<int>());
  }
  std::string raw;
  check.equal("answer", stripped_answer(text, tokens, raw), recorded.at("answer").get<std::string>());
  check.equal("decoded_raw", raw, recorded.at("decoded_raw").get<std::string>());

  answer_words words{prompt.ids, at::cat(states)};
  words.sequence.insert(words.sequence.end(), tokens.begin(), tokens.end());
  check.equal("full_sequence", words.sequence, recorded.at("full_sequence").get<std::vector<token_id>>());
  check.equal("n_hidden_rows", words.hidden.size(0), recorded.at("n_hidden_rows").get<std::int64_t>());
  const auto& all = words.sequence;
  const auto last = [&](const char* token) { return std::find(all.rbegin(), all.rend(), text.id(token)); };
  words.begin = static_cast<std::size_t>(all.rend() - last("<|tts_bos|>"));
  const auto end = last("<|tts_eos|>");
  words.end = end == all.rend() ? all.size() : static_cast<std::size_t>(all.rend() - end) - 1;
  return words;
}

/// The reference's calls. If its last full window was already the end, it sends the last three tokens again.
std::vector<speech::window_call> literal_windows(std::span<const std::int64_t> tokens) {
  auto calls = speech::whole_windows(tokens);
  if (tokens.size() >= speech::window_tokens && (tokens.size() - speech::window_tokens) % speech::window_step == 0) {
    const auto rest = tokens.last(speech::window_lookahead);
    calls.push_back({{rest.begin(), rest.end()}, true});
  }
  return calls;
}

void speak(e2e_set& set, const json& recorded, const safetensors_file& golden, const answer_words& words,
           case_check& check) {
  const auto count = words.end - words.begin;
  const auto condition = set.words().chat(
      std::span(words.sequence).subspan(words.begin, count),
      words.hidden.narrow(0, static_cast<std::int64_t>(words.begin), static_cast<std::int64_t>(count)));
  check.close("tts_inputs_embeds", condition, golden_of(golden, "tts_inputs_embeds"), thinker_tolerance);
  recorded_draws chance({});
  speech::tts_turn turn(*set.speech().embeddings, *set.speech().tokens, speech::tts_form::whole, {});
  turn.begin(condition.to(at::kFloat), speech::whole_limits);
  replay_speech_tokens(*set.speech().tokens, turn, chance, recorded.at("tts_draws"), check);
  const auto tokens = turn.group();
  check.equal("speech_tokens", std::vector(tokens.begin(), tokens.end()), as_tokens(recorded.at("speech_tokens")));

  const auto& sound = *set.speech().sound;
  auto stream = sound.start(set.voice(recorded.at("tts_ref")));
  const auto calls = literal_windows(tokens);
  const auto& made = recorded.at("token2wav_calls");
  check.equal("calls", calls.size(), made.size());
  std::vector<at::Tensor> pieces;
  for (std::size_t n = 0; n < std::min(calls.size(), made.size()); ++n) {
    const speech::token2wav::job job{&stream, calls[n].tokens, calls[n].last, nullptr, {}};
    const auto key = "mel" + std::to_string(n);
    at::Tensor mel;
    if (stream.ended) { // here the reference's vocoder rejects the output of its flow model
      check.exact("caught_exception", !recorded.at("caught_exception").is_null());
      check.equal("tokens of a call", calls[n].tokens, as_tokens(made[n].at("tokens")));
      const speech::flow::job refused{
          &stream.acoustic, at::tensor(calls[n].tokens, at::kLong), stream.speaker->speaker, true, {}};
      mel = sound.acoustic().run({&refused, 1})[0].squeeze(0);
    } else {
      pieces.push_back(replay_sound(sound, job, made[n], mel, check));
    }
    check.close(key, mel, golden_of(golden, key), e2e_tolerance::mel);
  }
  if (recorded.at("full_audio").is_null()) return;
  check.exact("caught_exception", recorded.at("caught_exception").is_null());
  const auto audio = at::cat(pieces).contiguous();
  check.close("audio", audio, golden_of(golden, "audio"));
  check_whole_sound({audio.const_data_ptr<float>(), audio.const_data_ptr<float>() + audio.numel()},
                    recorded.at("full_audio"), check);
}

} // namespace

void replay_e2e_answer(e2e_set& set, const std::string& stem, report& out) {
  const auto& recorded = set.files().cases(stem);
  answer_words words;
  out.run(stem, "words", thinker_tolerance, [&](case_check& check) { words = think(set, recorded, check); });
  out.run(stem, "sound", e2e_tolerance::sound, [&](case_check& check) {
    const bool spoken = !recorded.at("speech_tokens").is_null();
    check.exact("words", words.hidden.defined());
    if (!words.hidden.defined()) return;
    check.equal("spoken", words.speakable(), spoken);
    if (spoken && words.speakable())
      speak(set, recorded, set.files().tensors(stem), words, check);
    else
      check.exact("caught_exception",
                  !recorded.at("caught_exception").is_null() && recorded.at("full_audio").is_null());
  });
}

} // namespace parley::inference::verify
